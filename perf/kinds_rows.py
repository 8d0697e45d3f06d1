"""Kinds of kinds_kernels_rows.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import MEMORY, Launch, Make, cdiv, kind, power_of_two, row_warps

NUMBERS = {"n": 1 << 26}
FEW = {"n": 5000}
GATED = {"rows": 8192, "n": 11008, "dtype": "bfloat16"}
FEW_GATED = {"rows": 5, "n": 300, "dtype": "bfloat16"}


@kind(MEMORY, NUMBERS, FEW)
def add(make: Make, n: int) -> Launch:
    x, y = make.normal(n), make.normal(n)
    return Launch([x, y, make.empty(n), n], (cdiv(n, 1024),), {"BLOCK": 1024},
                  {2: lambda: x.double() + y}, {"num_warps": 4})


@kind(MEMORY, NUMBERS, FEW)
def dropout(make: Make, n: int) -> Launch:
    x, p, seed = make.normal(n, dtype="float16"), 0.3, 1234567

    def wanted():
        # in float32, as kernels compare
        kept = philox_uniform(make.torch, make.torch.arange(n, device=x.device), seed) > (
            make.torch.tensor(p, dtype=make.torch.float32, device=x.device))
        return make.torch.where(kept, x.double() / (1 - p), 0.0)

    return Launch([x, make.empty(n, dtype="float16"), n, p, seed], (cdiv(n, 1024),),
                  {"BLOCK": 1024}, {1: wanted}, {"num_warps": 4})


def philox_uniform(torch, counters, seed: int):
    """The uniform numbers of philox_bits, as Triton scales them."""
    bits = philox_bits(torch, counters, seed)
    signed = torch.where(bits >= 1 << 31, bits - (1 << 32), bits)
    return torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10


def philox_bits(torch, counters, seed: int):
    """The first words of Philox 4x32-10 of counters (i, 0, 0, 0), in int64.

    Source: Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011.
    """
    low = 0xFFFFFFFF
    c = [counters.long(), *(torch.zeros_like(counters) for _ in range(3))]
    keys = [seed & low, seed >> 32]
    for _ in range(10):
        high0, low0 = _product(0xD2511F53, c[0])
        high1, low1 = _product(0xCD9E8D57, c[2])
        c = [high1 ^ c[1] ^ keys[0], low1, high0 ^ c[3] ^ keys[1], low0]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return c[0]


def _product(a: int, b):
    """High and low words of products of unsigned 32-bit numbers, in int64."""
    upper = (a >> 16) * b
    lower = (a & 0xFFFF) * b
    high = (upper + (lower >> 16)) >> 16
    return high, (((upper & 0xFFFF) << 16) + lower) & 0xFFFFFFFF


@kind(MEMORY, NUMBERS, FEW)
def dropout_mask(make: Make, n: int) -> Launch:
    x, keep, p = make.normal(n, dtype="float16"), make.ints(0, 2, n, dtype="int8"), 0.3
    return Launch([x, keep, make.empty(n, dtype="float16"), n, p], (cdiv(n, 1024),),
                  {"BLOCK": 1024}, {2: lambda: x.double() / (1 - p) * keep}, {"num_warps": 4})


def _gated(make: Make, rows: int, n: int, dtype: str, activation) -> Launch:
    gate, up = (make.normal(rows, n, dtype=dtype) for _ in range(2))
    block = power_of_two(n)
    return Launch([gate, up, make.empty(rows, n, dtype=dtype), n, n], (rows,), {"BLOCK": block},
                  {2: lambda: activation(gate.double()) * up}, {"num_warps": row_warps(block)})


def _gated_backward(make: Make, rows: int, n: int, dtype: str, activation) -> Launch:
    dout, gate, up = (make.normal(rows, n, dtype=dtype) for _ in range(3))
    block = power_of_two(n)

    def gradient(of: int):
        with make.torch.enable_grad():
            inputs = [gate.double().requires_grad_(), up.double().requires_grad_()]
            result = activation(inputs[0]) * inputs[1]
        return make.torch.autograd.grad(result, inputs[of], dout.double())[0]

    return Launch([dout, gate, up, n, n], (rows,), {"BLOCK": block},
                  {1: lambda: gradient(0), 2: lambda: gradient(1)},
                  {"num_warps": row_warps(block)})


@kind(MEMORY, GATED, FEW_GATED)
def swiglu_forward(make: Make, **sizes) -> Launch:
    return _gated(make, **sizes, activation=make.torch.nn.functional.silu)


@kind(MEMORY, GATED, FEW_GATED)
def swiglu_backward(make: Make, **sizes) -> Launch:
    return _gated_backward(make, **sizes, activation=make.torch.nn.functional.silu)


def _gelu(make: Make):
    return lambda x: make.torch.nn.functional.gelu(x, approximate="tanh")


@kind(MEMORY, GATED, FEW_GATED)
def geglu_forward(make: Make, **sizes) -> Launch:
    return _gated(make, **sizes, activation=_gelu(make))


@kind(MEMORY, GATED, FEW_GATED)
def geglu_backward(make: Make, **sizes) -> Launch:
    return _gated_backward(make, **sizes, activation=_gelu(make))


@kind(MEMORY, NUMBERS, FEW)
def adamw(make: Make, n: int) -> Launch:
    p, g, m = make.normal(n), make.normal(n), make.normal(n, scale=0.1)
    v = make.normal(n).square()
    numbers = rate, beta1, beta2, epsilon, decay, c1, c2 = 1e-3, 0.9, 0.99, 1e-8, 0.1, 0.4, 0.05
    def first():
        return m.double() * beta1 + g.double() * (1 - beta1)

    def second():
        return v.double() * beta2 + g.double().square() * (1 - beta2)

    def weights():
        step = first() / c1 / ((second() / c2).sqrt() + epsilon)
        return p.double() * (1 - rate * decay) - rate * step

    return Launch([p, g, m, v, make.empty(n, dtype="bfloat16"), n, *numbers], (cdiv(n, 1024),),
                  {"BLOCK": 1024}, {0: weights, 2: first, 3: second, 4: weights},
                  {"num_warps": 4})


@kind(MEMORY, {"rows": 16384, "n": 1000}, {"rows": 3, "n": 100}, "softmax_f16_1000")
@kind(MEMORY, {"rows": 4096, "n": 16384}, {"rows": 3, "n": 256}, "softmax_f16_16384")
def softmax(make: Make, rows: int, n: int) -> Launch:
    x, block = make.normal(rows, n, dtype="float16"), power_of_two(n)
    return Launch([x, make.empty(rows, n, dtype="float16"), n, n], (rows,), {"BLOCK": block},
                  {1: lambda: x.double().softmax(1)}, {"num_warps": row_warps(block)})


@kind(MEMORY, {"rows": 16384, "n": 4096, "programs": 264},
      {"rows": 7, "n": 200, "programs": 3})
def softmax_persistent(make: Make, rows: int, n: int, programs: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, n), n, rows, n], (programs,),
                  {"BLOCK": power_of_two(n), "STAGES": 4}, {1: lambda: x.double().softmax(1)},
                  {"num_warps": 8})


@kind(MEMORY, {"rows": 8192, "n": 8192}, {"rows": 3, "n": 100})
def log_softmax_backward(make: Make, rows: int, n: int) -> Launch:
    y = make.normal(rows, n).log_softmax(1).to(make.torch.float16)
    dy, block = make.normal(rows, n, dtype="float16"), power_of_two(n)
    return Launch([y, dy, make.empty(rows, n, dtype="float16"), n, n], (rows,), {"BLOCK": block},
                  {2: lambda: dy.double() - y.double().exp() * dy.double().sum(1, True)},
                  {"num_warps": row_warps(block)})


@kind(MEMORY, {"rows": 16384, "n": 8192}, {"rows": 3, "n": 300})
def layer_norm_forward(make: Make, rows: int, n: int) -> Launch:
    x, w, b = (make.normal(*shape, dtype="float16") for shape in ((rows, n), (n,), (n,)))
    functional = make.torch.nn.functional
    return Launch(
        [x, w, b, make.empty(rows, n, dtype="float16"), make.empty(rows), make.empty(rows), n, n,
         1e-5], (rows,), {"BLOCK": min(4096, power_of_two(n))},
        {3: lambda: functional.layer_norm(x.double(), (n,), w.double(), b.double(), 1e-5),
         4: lambda: x.double().mean(1), 5: lambda: _rstd(x)}, {"num_warps": 8})


def _rstd(x):
    return (x.double().var(1, unbiased=False) + 1e-5).rsqrt()


@kind(MEMORY, {"rows": 8192, "n": 4096, "groups": 64}, {"rows": 7, "n": 200, "groups": 3})
def layer_norm_backward(make: Make, rows: int, n: int, groups: int) -> Launch:
    dy, x, w = (make.normal(*shape, dtype="float16") for shape in ((rows, n), (rows, n), (n,)))
    mean, rstd = x.float().mean(1), _rstd(x).float()

    def normal():
        return (x.double() - mean.double()[:, None]) * rstd.double()[:, None]

    def dx():
        scaled, unit = dy.double() * w, normal()
        inner = unit * (unit * scaled).mean(1, True) + scaled.mean(1, True)
        return (scaled - inner) * rstd.double()[:, None]

    def grouped(values):
        sums = make.torch.zeros(groups, n, device=x.device, dtype=make.torch.float64)
        return sums.index_add_(0, make.torch.arange(rows, device=x.device) % groups, values)

    return Launch(
        [make.empty(rows, n, dtype="float16"), dy, make.empty(groups, n), make.empty(groups, n),
         x, w, mean, rstd, make.zeros(2 * groups, dtype="int32"), n, n], (rows,),
        {"GROUPS": groups, "BLOCK": power_of_two(n)},
        {0: dx, 2: lambda: grouped(dy.double() * normal()), 3: lambda: grouped(dy.double())},
        {"num_warps": 8}, restored=(8,))


@kind(MEMORY, {"rows": 1024, "n": 32768}, {"rows": 70, "n": 200})
def column_sums(make: Make, rows: int, n: int) -> Launch:
    dw, db = make.normal(rows, n), make.normal(rows, n)
    return Launch([dw, db, make.empty(n), make.empty(n), rows, n], (cdiv(n, 128),),
                  {"ROWS": 32, "COLUMNS": 128},
                  {2: lambda: dw.double().sum(0), 3: lambda: db.double().sum(0)},
                  {"num_warps": 4})


RMS = {"rows": 32768, "n": 4096}
FEW_RMS = {"rows": 5, "n": 300}


@kind(MEMORY, RMS, FEW_RMS)
def rms_norm_forward(make: Make, rows: int, n: int) -> Launch:
    x, w = make.normal(rows, n, dtype="bfloat16"), make.normal(n, dtype="bfloat16")
    block = power_of_two(n)
    return Launch([x, w, make.empty(rows, n, dtype="bfloat16"), make.empty(rows), n, n, 1e-6],
                  (rows,), {"BLOCK": block},
                  {2: lambda: x.double() * _rms(x) * w, 3: lambda: _rms(x)[:, 0]},
                  {"num_warps": row_warps(block)})


def _rms(x):
    return (x.double().square().mean(1, True) + 1e-6).rsqrt()


@kind(MEMORY, RMS, FEW_RMS)
def rms_norm_residual(make: Make, rows: int, n: int) -> Launch:
    x, residual = (make.normal(rows, n, dtype="bfloat16") for _ in range(2))
    w, block = make.normal(n, dtype="bfloat16"), power_of_two(n)

    def total():
        return x.double() + residual.double()

    return Launch([x, residual, w, make.empty(rows, n, dtype="bfloat16"), n, n, 1e-6], (rows,),
                  {"BLOCK": block}, {1: total, 3: lambda: total() * _rms(total()) * w},
                  {"num_warps": row_warps(block)})


@kind(MEMORY, RMS | {"programs": 132}, FEW_RMS | {"programs": 2})
def rms_norm_backward(make: Make, rows: int, n: int, programs: int) -> Launch:
    dy, x = (make.normal(rows, n, dtype="bfloat16") for _ in range(2))
    w, each = make.normal(n, dtype="bfloat16"), cdiv(rows, programs)
    rstd, block = _rms(x)[:, 0].float(), power_of_two(n)

    def dx():
        scale, m = rstd.double()[:, None], dy.double() * w
        return scale * m - scale ** 3 * (m * x).mean(1, True) * x

    def dw():
        parts = (dy.double() * x * rstd.double()[:, None]).split(each)
        sums = [part.sum(0) for part in parts]
        sums += [make.torch.zeros_like(sums[0])] * (programs - len(sums))
        return make.torch.stack(sums)

    return Launch([dy, x, w, rstd, make.empty(rows, n, dtype="bfloat16"),
                   make.empty(programs, n), n, rows, n, each], (programs,), {"BLOCK": block},
                  {4: dx, 5: dw}, {"num_warps": row_warps(block)})


@kind(MEMORY, {"images": 256, "channels": 256, "pixels": 1024, "groups": 32},
      {"images": 2, "channels": 12, "pixels": 50, "groups": 4})
def group_norm(make: Make, images: int, channels: int, pixels: int, groups: int) -> Launch:
    x, w, b = make.normal(images, channels, pixels), make.normal(channels), make.normal(channels)
    size = channels // groups * pixels
    return Launch(
        [x, w, b, make.empty(images, channels, pixels), size, pixels, groups, 1e-5],
        (images * groups,), {"BLOCK": 2048 if size >= 2048 else power_of_two(size)},
        {3: lambda: make.torch.nn.functional.group_norm(
            x.double(), groups, w.double(), b.double(), 1e-5)}, {"num_warps": 8})


@kind(MEMORY, {"rows": 2048, "n": 128256}, {"rows": 5, "n": 300})
def cross_entropy(make: Make, rows: int, n: int) -> Launch:
    logits, target = make.normal(rows, n, dtype="bfloat16"), make.ints(0, n, rows, dtype="int64")
    scale, at = 0.125, make.torch.arange(rows, device=target.device)

    def gradient():
        d = logits.double().softmax(1)
        d[at, target] -= 1
        return d * scale

    def loss():
        return -logits.double().log_softmax(1)[at, target]

    block = min(32768, power_of_two(n) // 2)
    return Launch([logits, target, make.empty(rows), n, n, scale], (rows,), {"BLOCK": block},
                  {0: gradient, 2: loss}, {"num_warps": row_warps(block)})


@kind(MEMORY, {"rows": 2048, "n": 32000}, {"rows": 3, "n": 300})
def kl(make: Make, rows: int, n: int) -> Launch:
    log_q, p = make.normal(rows, n).log_softmax(1), make.normal(rows, n).softmax(1)
    return Launch([log_q, p, make.empty(rows), n, n], (rows,),
                  {"BLOCK": min(8192, power_of_two(n))},
                  {2: lambda: (p.double() * (p.double().log() - log_q)).sum(1)},
                  {"num_warps": 16})


@kind(MEMORY, {"rows": 2048, "n": 32000}, {"rows": 3, "n": 300})
def jsd(make: Make, rows: int, n: int) -> Launch:
    log_q, log_p = (make.normal(rows, n).log_softmax(1) for _ in range(2))

    def part(of: float, log):
        middle = (0.5 * log_p.double().exp() + 0.5 * log_q.double().exp()).log()
        return of * log.double().exp() * (log.double() - middle)

    return Launch([log_q, log_p, make.empty(rows, n), make.empty(rows, n), n, n, 0.5], (rows,),
                  {"BLOCK": min(8192, power_of_two(n))},
                  {2: lambda: part(0.5, log_p) + part(0.5, log_q), 3: lambda: part(0.5, log_q)},
                  {"num_warps": 16})
