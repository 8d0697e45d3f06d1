"""Kinds of kinds_kernels_fourth_more.py: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import FOURTH, Launch, Make, cdiv, kind, power_of_two, row_warps
from kinds_fourth import BFLOAT, EIGHT, FOUR, HALF


@kind(FOURTH, {"parts": 1024, "most": 512, "n": 256}, {"parts": 4, "most": 90, "n": 50})
def jagged_to_padded(make: Make, parts: int, most: int, n: int) -> Launch:
    lengths = [i * 7919 % (most + 1) for i in range(parts)]
    starts = [sum(lengths[:i]) for i in range(parts + 1)]
    x = make.normal(starts[-1], n)

    def wanted():
        return make.torch.nn.utils.rnn.pad_sequence(
            [*x.split(lengths), make.torch.zeros(most, n, device=x.device)], True, -1.0)[:-1]

    return Launch([x, make.given(starts), make.empty(parts, most, n), most, n, -1.0],
                  (cdiv(most, 64), cdiv(n, 64), parts), {"ROWS": 64, "BLOCK": 64}, {2: wanted},
                  FOUR)


@kind(FOURTH, {"rows": 100_000, "each": 32, "n": 256}, {"rows": 20, "each": 5, "n": 50})
def csr_times_dense(make: Make, rows: int, each: int, n: int) -> Launch:
    torch, x = make.torch, make.normal(rows, n)
    lengths = [i * 7919 % (2 * each) for i in range(rows)]
    starts = make.given([0, *lengths]).cumsum(0).int()
    columns, values = make.ints(0, rows, sum(lengths)), make.normal(sum(lengths))

    def wanted():
        row = torch.arange(rows, device=x.device).repeat_interleave(starts.diff().long())
        products = values.double()[:, None] * x.double()[columns.long()]
        return torch.zeros(rows, n, device=x.device).double().index_add_(0, row, products)

    return Launch([starts, columns, values, x, make.empty(rows, n), n], (rows,),
                  {"BLOCK": power_of_two(n)}, {4: wanted}, FOUR)


@kind(FOURTH, {"n": 16384}, {"n": 300})
def nbody(make: Make, n: int, softening: float = 1e-2) -> Launch:
    bodies, mass = [make.normal(n) for _ in range(3)], make.normal(n).abs()

    def pulls(axis: int):
        places = make.torch.stack(bodies, 1).double()
        found = []
        for some in places.split(2048):
            gap = places[None] - some[:, None]
            inverse = (gap.square().sum(2) + softening) ** -1.5
            found.append((mass.double() * inverse * gap[:, :, axis]).sum(1))
        return make.torch.cat(found)

    return Launch([*bodies, mass, make.empty(n), make.empty(n), make.empty(n), n, softening],
                  (cdiv(n, 64),), {"M": 64, "N": 64},
                  {4 + axis: lambda axis=axis: pulls(axis) for axis in range(3)}, FOUR)


@kind(FOURTH, {"depth": 256, "height": 512, "width": 512},
      {"depth": 4, "height": 9, "width": 30})
def heat_3d(make: Make, depth: int, height: int, width: int, rate: float = 0.1) -> Launch:
    x = make.normal(depth, height, width)

    def wanted():
        y = x.double()
        inner = (slice(1, -1),) * 3
        total = sum(y.roll(way, axis)[inner] for axis in range(3) for way in (1, -1))
        new = y.clone()
        new[inner] += rate * (total - 6 * y[inner])
        return new

    return Launch([x, make.empty(depth, height, width), depth, height, width, rate],
                  (cdiv(width, 128), cdiv(height, 8), depth), {"Y": 8, "X": 128}, {1: wanted},
                  FOUR)


@kind(FOURTH, {"n": 8192}, {"n": 100})
def nms_bits(make: Make, n: int) -> Launch:
    torch, words = make.torch, cdiv(n, 32)
    corner, size = make.ints(0, 600, n, 2), make.ints(1, 400, n, 2)
    boxes = torch.cat([corner, corner + size], 1).float()

    def wanted():
        wide, out = boxes.double(), []
        at = torch.arange(words * 32, device=boxes.device)
        area = (wide[:, 2:] - wide[:, :2]).prod(1)
        for i in torch.arange(n, device=boxes.device).split(1024):
            low = torch.maximum(wide[i, None, :2], wide[None, :, :2])
            high = torch.minimum(wide[i, None, 2:], wide[None, :, 2:])
            common = (high - low).clamp(min=0).prod(2)
            hits = 2 * common > area[i, None] + area - common
            hits = torch.nn.functional.pad(hits, (0, words * 32 - n)) & (at > i[:, None])
            bits = (hits.reshape(-1, words, 32).long() << torch.arange(32, device=at.device)).sum(2)
            out.append(torch.where(bits >= 1 << 31, bits - (1 << 32), bits))
        return torch.cat(out)

    return Launch([boxes, make.empty(n, words, dtype="int32"), n, words],
                  (cdiv(n, 32), cdiv(words, 4)), {"M": 32, "W": 4}, {1: wanted}, FOUR)


@kind(FOURTH, {"rows": 8192, "n": 4096}, {"rows": 5, "n": 100})
def cummax(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, n), make.empty(rows, n, dtype="int32"), n], (rows,),
                  {"BLOCK": power_of_two(n)},
                  {1: lambda: x.cummax(1)[0], 2: lambda: x.cummax(1)[1]},
                  {"num_warps": row_warps(power_of_two(n))})


@kind(FOURTH, {"n": 1 << 22, "bins": 1024}, {"n": 3000, "bins": 32})
def weighted_histogram(make: Make, n: int, bins: int) -> Launch:
    torch = make.torch
    x, weight, out = torch.rand(n, device=make.device), make.normal(n).abs(), make.zeros(bins)
    return Launch([x, weight, out, n, bins], (cdiv(n, 1024),), {"BLOCK": 1024},
                  {2: lambda: torch.zeros(bins, device=x.device).double().index_add_(
                      0, (x * bins).long(), weight.double())}, FOUR)


@kind(FOURTH, {"images": 16, "channels": 32, "height": 256, "width": 256},
      {"images": 2, "channels": 3, "height": 9, "width": 14})
def grid_sample(make: Make, images: int, channels: int, height: int, width: int) -> Launch:
    x = make.normal(images, channels, height, width)
    line_y, line_x = (make.torch.linspace(-1, 1, size, device=make.device)
                      for size in (height, width))
    grid = make.torch.stack(make.torch.meshgrid(line_x, line_y, indexing="xy"), 2)
    grid = (grid + make.normal(images, height, width, 2, scale=0.02)).contiguous()

    def wanted():
        return make.torch.nn.functional.grid_sample(x.double(), grid.double(),
                                                    align_corners=False)

    return Launch([x, grid, make.empty(images, channels, height, width), channels, height, width,
                   height * width], (cdiv(height * width, 256), images), {"BLOCK": 256},
                  {2: wanted}, FOUR, {2: 1e-3})


@kind(FOURTH, {"sequences": 32, "pages": 256, "heads": 8, "spare": 500},
      {"sequences": 2, "pages": 3, "heads": 2, "spare": 5})
def kv_dequantise(make: Make, sequences: int, pages: int, heads: int, spare: int) -> Launch:
    page, d, count = 16, 128, sequences * pages + spare
    q = make.ints(-127, 128, count, page, heads, d, dtype="int8")
    scale = make.normal(count, page, heads, dtype=HALF)
    table = make.torch.randperm(count, device=make.device)[:sequences * pages].int()

    def wanted():
        at = table.long()
        return q[at].double() * scale[at].double()[..., None]

    return Launch([q, scale, table, make.empty(sequences * pages, page, heads, d, dtype=BFLOAT),
                   pages, heads], (pages, heads, sequences), {"PAGE": page, "D": d}, {3: wanted},
                  FOUR)


@kind(FOURTH, {"images": 8, "tokens": 4096, "n": 3072}, {"images": 2, "tokens": 5, "n": 90})
def modulate(make: Make, images: int, tokens: int, n: int, epsilon: float = 1e-6) -> Launch:
    x = make.normal(images, tokens, n, dtype=BFLOAT)
    shift, scale = (make.normal(images, n, dtype=BFLOAT) for _ in range(2))

    def wanted():
        normal = make.torch.nn.functional.layer_norm(x.double(), (n,), eps=epsilon)
        return normal * (1 + scale.double()[:, None]) + shift.double()[:, None]

    return Launch([x, shift, scale, make.empty(images, tokens, n, dtype=BFLOAT), tokens, n,
                   epsilon], (images * tokens,), {"BLOCK": power_of_two(n)}, {3: wanted}, EIGHT)


@kind(FOURTH, {"groups": 1 << 18}, {"groups": 10})
def adam_8bit(make: Make, groups: int, group: int = 256) -> Launch:
    p, g = make.normal(groups, group), make.normal(groups, group, dtype=BFLOAT)
    m, v = (make.ints(low, high, groups, group, dtype=dtype)
            for low, high, dtype in ((-127, 128, "int8"), (1, 256, "uint8")))
    m_scale, v_scale = (make.normal(groups).abs() + 0.1) / 127, make.normal(groups).abs() / 255
    rate, beta1, beta2, epsilon, step = 1e-2, 0.9, 0.99, 1e-8, 9

    def first():
        return beta1 * m.double() * m_scale.double()[:, None] + (1 - beta1) * g.double()

    def second():
        return (beta2 * v.double() * v_scale.double()[:, None]
                + (1 - beta2) * g.double().square())

    def weights():
        root = (second() / (1 - beta2 ** step)).sqrt() + epsilon
        return p.double() - rate * first() / (1 - beta1 ** step) / root

    def scale(moment, most):
        return moment.abs().amax(1) / most

    # a quotient at a half may fall on either side: one step
    return Launch(
        [p, g, m, v, m_scale, v_scale, groups, rate, beta1, beta2, epsilon, 1 - beta1 ** step,
         1 - beta2 ** step], (cdiv(groups, 4),), {"ROWS": 4, "GROUP": group},
        {0: weights, 2: lambda: first() / scale(first(), 127)[:, None],
         3: lambda: second() / scale(second(), 255)[:, None],
         4: lambda: scale(first(), 127), 5: lambda: scale(second(), 255)}, FOUR, {2: 1, 3: 1})


@kind(FOURTH, {"m": 14336, "n": 8192}, {"m": 50, "n": 300})
def gemv(make: Make, m: int, n: int) -> Launch:
    w, x = make.normal(m, n, dtype=HALF), make.normal(n, dtype=HALF)
    return Launch([w, x, make.empty(m, dtype=HALF), m, n], (cdiv(m, 16),),
                  {"ROWS": 16, "BLOCK": 256}, {2: lambda: w.double() @ x.double()}, FOUR)


@kind(FOURTH, {"count": 100_000, "n": 1 << 24}, {"count": 50, "n": 3000})
def searchsorted(make: Make, count: int, n: int) -> Launch:
    edges, x = make.normal(count).sort()[0], make.normal(n)
    return Launch([edges, x, make.empty(n, dtype="int32"), count, n], (cdiv(n, 1024),),
                  {"STEPS": count.bit_length(), "BLOCK": 1024},
                  {2: lambda: make.torch.searchsorted(edges, x)}, FOUR)
