"""Kinds of kinds_kernels_later.py, drawn on 2026-11-29: their launches, and what must come out."""

from __future__ import annotations

from kinds_case import LATER, Launch, Make, cdiv, kind, power_of_two, row_warps
from kinds_rows import philox_uniform

FOUR = {"num_warps": 4}


@kind(LATER, {"batch": 64, "channels": 512, "pixels": 3136},
      {"batch": 3, "channels": 4, "pixels": 50})
def batch_norm(make: Make, batch: int, channels: int, pixels: int) -> Launch:
    x = make.normal(batch, channels, pixels, dtype="float16")
    w, b, epsilon = make.normal(channels), make.normal(channels), 1e-5

    def statistics():
        wide = x.double()
        return wide.mean((0, 2)), 1 / (wide.var((0, 2), unbiased=False) + epsilon).sqrt()

    def wanted():
        mean, rstd = statistics()
        scale = (rstd * w.double())[:, None]
        return (x.double() - mean[:, None]) * scale + b.double()[:, None]

    return Launch([x, w, b, make.empty(batch, channels, pixels, dtype="float16"),
                   make.empty(channels), make.empty(channels), batch, channels, pixels, epsilon],
                  (channels,), {"BLOCK": power_of_two(pixels)},
                  {3: wanted, 5: lambda: statistics()[1]}, {"num_warps": 8})


@kind(LATER, {"instances": 16384, "pixels": 3136}, {"instances": 3, "pixels": 50})
def instance_norm(make: Make, instances: int, pixels: int) -> Launch:
    x, epsilon = make.normal(instances, pixels), 1e-5

    def wanted():
        wide = x.double()
        variance, mean = make.torch.var_mean(wide, 1, unbiased=False, keepdim=True)
        return (wide - mean) / (variance + epsilon).sqrt()

    return Launch([x, make.empty(instances, pixels), pixels, epsilon], (instances,),
                  {"BLOCK": power_of_two(pixels)}, {1: wanted},
                  {"num_warps": row_warps(power_of_two(pixels))})


@kind(LATER, {"rows": 8192, "n": 6144}, {"rows": 5, "n": 300})
def bias_gelu_dropout(make: Make, rows: int, n: int) -> Launch:
    torch, size, p, seed = make.torch, rows * n, 0.1, 98765
    x, bias = make.normal(rows, n, dtype="float16"), make.normal(n, dtype="float16")

    def wanted():
        # in float32, as kernels compare
        kept = philox_uniform(torch, torch.arange(size, device=x.device), seed) > (
            torch.tensor(p, dtype=torch.float32, device=x.device))
        gelu = torch.nn.functional.gelu(x.double() + bias.double())
        return torch.where(kept.reshape(rows, n), gelu / (1 - p), 0.0)

    return Launch([x, bias, make.empty(rows, n, dtype="float16"), size, n, p, seed],
                  (cdiv(size, 1024),), {"BLOCK": 1024}, {2: wanted}, FOUR)


@kind(LATER, {"tokens": 16384, "heads": 32, "half": 64, "most": 8192},
      {"tokens": 20, "heads": 3, "half": 16, "most": 50})
def rope_positions(make: Make, tokens: int, heads: int, half: int, most: int) -> Launch:
    x, angle = make.normal(tokens, heads, 2, half, dtype="float16"), make.normal(most, half)
    cos, sin = angle.cos().half(), angle.sin().half()
    positions = make.ints(0, most, tokens)

    def wanted():
        c, s = (t[positions.long()].double()[:, None] for t in (cos, sin))
        a, b = x.double().unbind(2)
        return make.torch.stack([a * c - b * s, a * s + b * c], 2)

    return Launch([x, cos, sin, positions, tokens, heads], (cdiv(tokens, 16), cdiv(heads, 2)),
                  {"TOKENS": 16, "HEADS": 2, "HALF": half}, {0: wanted}, FOUR)


@kind(LATER, {"rows": 8192, "n": 4096}, {"rows": 3, "n": 100})
def top_p(make: Make, rows: int, n: int, p: float = 0.75) -> Launch:
    # steps of the sum of probabilities are far from p, so that no rounding decides
    logits = make.given([-k * 0.7 if k < 30 else -21.0 for k in range(n)], "float32")
    logits = (logits + make.normal(rows, 1)).contiguous()
    temperature = 0.7

    def wanted():
        probability = ((logits.double() / temperature).softmax(1))
        before = probability.cumsum(1) - probability
        kept = make.torch.where(before < p, probability, 0.0)
        return kept / kept.sum(1, keepdim=True)

    return Launch([logits, make.empty(rows, n), n, n, p, temperature], (rows,),
                  {"BLOCK": power_of_two(n)}, {1: wanted},
                  {"num_warps": row_warps(power_of_two(n))})


@kind(LATER, {"n": 1 << 25, "each": 37}, {"n": 3000, "each": 37})
def segment_sums(make: Make, n: int, each: int) -> Launch:
    x = make.normal(n)
    segment = make.torch.arange(n, device=make.device).div(each, rounding_mode="floor").int()
    count = cdiv(n, each)
    return Launch([x, segment, make.zeros(count), n], (cdiv(n, 1024),), {"BLOCK": 1024},
                  {2: lambda: make.torch.zeros(count, device=make.device).double().index_add_(
                      0, segment.long(), x.double())}, FOUR)


@kind(LATER, {"rows": 16384, "columns": 16384}, {"rows": 70, "columns": 130})
def transpose_bytes(make: Make, rows: int, columns: int) -> Launch:
    x = make.ints(-128, 128, rows, columns, dtype="int8")
    return Launch([x, make.empty(columns, rows, dtype="int8"), rows, columns],
                  (cdiv(rows, 128), cdiv(columns, 128)), {"M": 128, "N": 128}, {1: lambda: x.T},
                  {"num_warps": 8})


IMAGES = {"images": 16, "channels": 64, "height": 128, "width": 128}
FEW_IMAGES = {"images": 2, "channels": 3, "height": 9, "width": 14}


@kind(LATER, IMAGES, FEW_IMAGES)
def pixel_shuffle(make: Make, images: int, channels: int, height: int, width: int) -> Launch:
    x = make.normal(images, channels * 4, height, width, dtype="float16")
    out = make.empty(images, channels, height * 2, width * 2, dtype="float16")
    return Launch([x, out, out.numel(), channels, height, width], (cdiv(out.numel(), 1024),),
                  {"FACTOR": 2, "BLOCK": 1024},
                  {1: lambda: make.torch.nn.functional.pixel_shuffle(x, 2)}, FOUR)


@kind(LATER, {"images": 96, "height": 512, "width": 512}, {"images": 2, "height": 9, "width": 14})
def bicubic(make: Make, images: int, height: int, width: int) -> Launch:
    x, tall, wide = make.normal(images, height, width), height * 3 // 2, width * 3 // 2

    def wanted():
        return make.torch.nn.functional.interpolate(
            x.double()[None], (tall, wide), mode="bicubic", align_corners=False)[0]

    return Launch([x, make.empty(images, tall, wide), height, width, tall, wide, height / tall,
                   width / wide], (cdiv(wide, 256), tall, images), {"BLOCK": 256}, {1: wanted},
                  FOUR, {1: 1e-3})


@kind(LATER, {"rows": 8192, "n": 8000}, {"rows": 5, "n": 100})
def argmax(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n)
    return Launch([x, make.empty(rows, dtype="int32"), make.empty(rows), n], (rows,),
                  {"BLOCK": power_of_two(n)}, {1: lambda: x.argmax(1), 2: lambda: x.amax(1)},
                  {"num_warps": row_warps(power_of_two(n))})


@kind(LATER, {"rows": 8192, "n": 4096}, {"rows": 5, "n": 100})
def reverse_products(make: Make, rows: int, n: int) -> Launch:
    x = 1 + make.normal(rows, n, scale=0.01)
    return Launch([x, make.empty(rows, n), n], (rows,), {"BLOCK": power_of_two(n)},
                  {1: lambda: x.double().flip(1).cumprod(1).flip(1)}, FOUR)


@kind(LATER, {"rows": 65536, "n": 512}, {"rows": 37, "n": 100})
def layer_norm_of_rows(make: Make, rows: int, n: int) -> Launch:
    x = make.normal(rows, n, dtype="bfloat16")
    w, b, epsilon = make.normal(n, dtype="bfloat16"), make.normal(n, dtype="bfloat16"), 1e-5
    return Launch([x, w, b, make.empty(rows, n, dtype="bfloat16"), rows, n, epsilon],
                  (cdiv(rows, 16),), {"ROWS": 16, "BLOCK": power_of_two(n)},
                  {3: lambda: make.torch.nn.functional.layer_norm(
                      x.double(), (n,), w.double(), b.double(), epsilon)}, FOUR)


@kind(LATER, {"rows": 8192, "columns": 8192, "step": 2}, {"rows": 70, "columns": 90, "step": 2},
      "copy_of_every_second", "strided_copy")
@kind(LATER, {"rows": 8192, "columns": 8192, "step": 1}, {"rows": 70, "columns": 90, "step": 1},
      "copy_of_transposed", "strided_copy")
def strided_copy(make: Make, rows: int, columns: int, step: int) -> Launch:
    """Of every second column, or of columns that are rows in memory."""
    base = make.normal(rows, columns * step) if step > 1 else make.normal(columns, rows)
    x = base[:, ::step] if step > 1 else base.T
    out = make.empty(rows, columns)
    return Launch([base, out, rows, columns, *x.stride(), *out.stride()],
                  (cdiv(rows, 64), cdiv(columns, 64)), {"M": 64, "N": 64}, {1: lambda: x}, FOUR)


@kind(LATER, {"rows": 16384, "n": 4096}, {"rows": 5, "n": 300})
def dequantise_rows(make: Make, rows: int, n: int) -> Launch:
    q, scale = make.ints(-127, 128, rows, n, dtype="int8"), make.normal(rows)
    return Launch([q, scale, make.empty(rows, n, dtype="float16"), n], (rows,),
                  {"BLOCK": power_of_two(n)},
                  {2: lambda: q.double() * scale.double()[:, None] / 127}, FOUR)


@kind(LATER, {"rows": 1 << 21, "n": 128}, {"rows": 300, "n": 20})
def nll_loss(make: Make, rows: int, n: int, ignored: int = -100) -> Launch:
    torch = make.torch
    logs, weight = make.normal(rows, n), make.normal(n).abs()
    target = make.ints(0, n, rows)
    target[::9] = ignored

    def wanted():
        return torch.nn.functional.nll_loss(logs, target.long(), weight, ignore_index=ignored,
                                            reduction="none")

    return Launch([logs, target, weight, make.empty(rows), rows, n, ignored],
                  (cdiv(rows, 256),), {"BLOCK": 256}, {3: wanted}, FOUR)


@kind(LATER, {"bags": 8192, "each": 24, "words": 1 << 18, "n": 256},
      {"bags": 6, "each": 4, "words": 30, "n": 40})
def embedding_bag(make: Make, bags: int, each: int, words: int, n: int) -> Launch:
    torch, table = make.torch, make.normal(words, n, dtype="float16")
    lengths = [1 + (7 * i + i // 5) % (2 * each - 1) for i in range(bags)]
    starts = make.given([0, *lengths]).cumsum(0).int()
    ids = make.ints(0, words, sum(lengths))

    def wanted():
        return torch.nn.functional.embedding_bag(ids.long(), table.double(), starts[:-1].long())

    return Launch([ids, starts, table, make.empty(bags, n), n], (bags,),
                  {"BLOCK": power_of_two(n)}, {3: wanted}, FOUR)


@kind(LATER, {"planes": 1024, "height": 128, "width": 128},
      {"planes": 3, "height": 9, "width": 14})
def upsample(make: Make, planes: int, height: int, width: int) -> Launch:
    x, out = make.normal(planes, height, width), make.empty(planes, 2 * height, 2 * width)
    return Launch([x, out, out.numel(), height, width], (cdiv(out.numel(), 1024),),
                  {"FACTOR": 2, "BLOCK": 1024},
                  {1: lambda: x.repeat_interleave(2, 1).repeat_interleave(2, 2)}, FOUR)


@kind(LATER, {"planes": 2048, "height": 224, "width": 224},
      {"planes": 3, "height": 9, "width": 14})
def max_pool(make: Make, planes: int, height: int, width: int) -> Launch:
    x, tall, wide = make.normal(planes, height, width), cdiv(height, 2), cdiv(width, 2)
    return Launch([x, make.empty(planes, tall, wide), height, width, tall, wide],
                  (cdiv(tall, 16), cdiv(wide, 64), planes),
                  {"SIDE": 3, "STRIDE": 2, "ROWS": 16, "COLUMNS": 64},
                  {1: lambda: make.torch.nn.functional.max_pool2d(x[None], 3, 2, 1)[0]}, FOUR)


@kind(LATER, {"batch": 64, "m": 200, "n": 4096}, {"batch": 2, "m": 20, "n": 50})
def softmax_of_columns(make: Make, batch: int, m: int, n: int) -> Launch:
    x = make.normal(batch, m, n)
    return Launch([x, make.empty(batch, m, n), m, n], (cdiv(n, 32), batch),
                  {"M": power_of_two(m), "N": 32}, {1: lambda: x.double().softmax(1)}, FOUR)


@kind(LATER, {"n": 33_554_400}, {"n": 3000})
def select(make: Make, n: int, block: int = 1024) -> Launch:
    torch, x = make.torch, make.normal(n)
    keep = torch.arange(n, device=make.device) * 7919 % 10 < 6  # 6 of each 10
    padded = torch.nn.functional.pad(keep.int(), (0, cdiv(n, block) * block - n))
    counts = padded.reshape(-1, block).sum(1)
    return Launch([x, keep.to(torch.int8), (counts.cumsum(0) - counts).int(),
                   make.empty(n // 10 * 6), n], (cdiv(n, block),), {"BLOCK": block},
                  {3: lambda: x[keep]}, FOUR)
