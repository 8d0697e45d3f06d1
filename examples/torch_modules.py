"""Fused layer norm and cross entropy as modules of PyTorch, trained beside PyTorch's own.

Each operator is a function under `blocknumba.torch.op` that makes its results and launches a kernel
on them; its gradient is another operator.  They work under autograd, torch.compile and export.
"""

import numpy as np
import torch
from torch import Tensor

import blocknumba as bn
import blocknumba.torch
from blocknumba.torch import next_power_of_2
from digits import digits

ROWS = 8  # of a program
CLASSES, HIDDEN, STEPS, RATE = 10, 64, 100, 0.05


@bn.jit
def normalise(x, weight, bias, out, mean, scale, eps, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """out = (x - mean) * scale * weight + bias by rows; COLUMNS: at least those of x."""
    r, c = bn.block(0, ROWS), bn.span(0, COLUMNS)
    size, inside = x.shape[1], c.index[None, :] < x.shape[1]
    rows = x[r, c]
    centre = bn.sum(rows, axis=1) / size
    off = bn.where(inside, rows - centre[:, None], 0)
    factor = 1 / bn.sqrt(bn.sum(off * off, axis=1) / size + eps)
    out[r, c] = off * factor[:, None] * weight[c] + bias[c]
    mean[r], scale[r] = centre, factor


@bn.jit
def normalise_back(slope, x, weight, mean, scale, x_slope, parts, ROWS: bn.constexpr,
                   COLUMNS: bn.constexpr):
    """x_slope, and what these rows add to the slopes of weight and bias.

    parts: (programs, 2, columns).
    """
    i, r, c = bn.program_id(0), bn.block(0, ROWS), bn.span(0, COLUMNS)
    size, g = x.shape[1], slope[r, c]
    normal = (x[r, c] - mean[r][:, None]) * scale[r][:, None]
    normal = bn.where((r.index[:, None] < x.shape[0]) & (c.index[None, :] < size), normal, 0)
    weighted = g * weight[c]
    along = bn.sum(weighted * normal, axis=1) / size
    level = bn.sum(weighted, axis=1) / size
    x_slope[r, c] = (weighted - level[:, None] - normal * along[:, None]) * scale[r][:, None]
    parts[i, 0, c] = bn.sum(g * normal, axis=0)
    parts[i, 1, c] = bn.sum(g, axis=0)


@bn.jit
def entropies(logits, labels, loss, slope, ROWS: bn.constexpr, COLUMNS: bn.constexpr):
    """loss[i] = -log(softmax(logits[i])[labels[i]]), and the slope of each by its row."""
    r, c = bn.block(0, ROWS), bn.span(0, COLUMNS)
    x = bn.load(logits.at[r, c], other=float("-inf"))
    shifted = x - bn.max(x, axis=1, keep_dims=True)
    powers = bn.exp(shifted)
    total = bn.sum(powers, axis=1, keep_dims=True)
    hit = labels[r][:, None] == c.index[None, :]
    loss[r] = bn.sum(bn.where(hit, bn.log(total) - shifted, 0), axis=1)
    slope[r, c] = powers / total - hit


def programs(rows: int) -> int:
    """Programs for so many rows."""
    return bn.cdiv(rows, ROWS)


@blocknumba.torch.op("blocknumba_examples::layer_norm")
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[
        Tensor, Tensor, Tensor]:
    """Layer norm of the rows of a matrix; also their means, and what they were scaled by."""
    rows, columns = x.shape
    out, mean, scale = torch.empty_like(x), x.new_empty(rows), x.new_empty(rows)
    normalise[programs(rows)](x, weight, bias, out, mean, scale, eps, ROWS=ROWS,
                              COLUMNS=next_power_of_2(columns))
    return out, mean, scale


@blocknumba.torch.op("blocknumba_examples::layer_norm_back")
def layer_norm_back(slope: Tensor, x: Tensor, weight: Tensor, mean: Tensor,
                    scale: Tensor) -> tuple[Tensor, Tensor]:
    """The slopes by x, and by weight and bias, of layer norm: (rows, columns), (2, columns)."""
    rows, columns = x.shape
    x_slope, parts = torch.empty_like(x), x.new_empty(programs(rows), 2, columns)
    normalise_back[programs(rows)](slope, x, weight, mean, scale, x_slope, parts, ROWS=ROWS,
                                   COLUMNS=next_power_of_2(columns))
    return x_slope, parts.sum(dim=0)


@blocknumba.torch.op("blocknumba_examples::cross_entropy")
def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The losses of rows of logits, and the slope of each by its row."""
    rows, columns = logits.shape
    loss, slope = logits.new_empty(rows), torch.empty_like(logits)
    entropies[programs(rows)](logits, labels, loss, slope, ROWS=ROWS,
                              COLUMNS=next_power_of_2(columns))
    return loss, slope


def _keep_norm(ctx, inputs, output):
    x, weight, _, _ = inputs
    _, mean, scale = output
    ctx.save_for_backward(x, weight, mean, scale)
    ctx.mark_non_differentiable(mean, scale)


def _norm_back(ctx, slope, *_):
    x_slope, both = layer_norm_back(slope.contiguous(), *ctx.saved_tensors)
    return x_slope, both[0], both[1], None


def _keep_entropy(ctx, inputs, output):
    _, slope = output
    ctx.save_for_backward(slope)
    ctx.mark_non_differentiable(slope)


def _entropy_back(ctx, loss_slope, _):
    slope, = ctx.saved_tensors
    return loss_slope[:, None] * slope, None


layer_norm.register_autograd(_norm_back, setup_context=_keep_norm)
cross_entropy.register_autograd(_entropy_back, setup_context=_keep_entropy)


class LayerNorm(torch.nn.Module):
    """torch.nn.LayerNorm of rows."""

    def __init__(self, columns: int, eps: float = 1e-5):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(columns))
        self.bias = torch.nn.Parameter(torch.zeros(columns))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x: (rows, columns)."""
        out, _, _ = layer_norm(x, self.weight, self.bias, self.eps)
        return out


class CrossEntropy(torch.nn.Module):
    """torch.nn.CrossEntropyLoss: the mean of all rows."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """logits: (rows, classes); labels: (rows,) ints."""
        loss, _ = cross_entropy(logits, labels)
        return loss.mean()


def losses(norm: type, loss: torch.nn.Module, device: str = "cpu") -> list[float]:
    """Losses of STEPS steps of descent on the digits, with these modules."""
    torch.manual_seed(0)
    images, labels = digits()
    x, y = torch.from_numpy(images).to(device), torch.from_numpy(labels).long().to(device)
    network = torch.nn.Sequential(torch.nn.Linear(x.shape[1], HIDDEN), norm(HIDDEN),
                                  torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)).to(device)
    optimizer = torch.optim.SGD(network.parameters(), RATE)
    found = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        now = loss(network(x), y)
        now.backward()
        optimizer.step()
        found.append(now.item())
    return found


def main() -> None:
    """Train with both, on the GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ours = losses(LayerNorm, CrossEntropy(), device)
    plain = losses(torch.nn.LayerNorm, torch.nn.CrossEntropyLoss(), device)
    np.testing.assert_allclose(ours, plain, rtol=1e-4)
    print(f"torch_modules: loss {ours[0]:.3f} to {ours[-1]:.3f}, as PyTorch's own")


if __name__ == "__main__":
    main()
