"""Networks of a few lines on sequences, signals and rows of numbers; exported_further.py exports them."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from exporting import plain


class Fourier(nn.Module):
    """A Fourier neural operator: products of the lowest frequencies of a map."""

    def __init__(self, width=16, modes=8):
        super().__init__()
        self.modes, self.width = modes, width
        self.lift, self.head = nn.Conv2d(1, width, 1), nn.Conv2d(width, 1, 1)
        self.w = nn.Parameter(torch.randn(3, width, width, 2 * modes, modes, 2) / width)
        self.skip = nn.ModuleList([nn.Conv2d(width, width, 1) for _ in range(3)])

    def forward(self, x):
        x = self.lift(x)
        for i in range(3):
            f = torch.view_as_real(torch.fft.rfft2(x, norm="ortho"))
            m = self.modes
            f = torch.cat([f[:, :, :m, :m], f[:, :, -m:, :m]], 2)
            w = self.w[i]
            re = torch.einsum("bixy,ioxy->boxy", f[..., 0], w[..., 0]) - torch.einsum("bixy,ioxy->boxy", f[..., 1], w[..., 1])
            im = torch.einsum("bixy,ioxy->boxy", f[..., 0], w[..., 1]) + torch.einsum("bixy,ioxy->boxy", f[..., 1], w[..., 0])
            z = torch.stack([re, im], -1)
            z = F.pad(z, (0, 0, 0, x.shape[3] // 2 + 1 - m, 0, x.shape[2] - 2 * m))
            y = torch.fft.irfft2(torch.view_as_complex(z.contiguous()), s=x.shape[2:], norm="ortho")
            x = F.gelu(y + self.skip[i](x))
        return self.head(x)


class TimesNet(nn.Module):
    """Series folded by their strongest periods. (Periods fixed: sizes by value cannot be exported.)"""

    def __init__(self, steps=96, width=32):
        super().__init__()
        self.embed, self.head = nn.Conv1d(7, width, 3, padding=1, padding_mode="circular"), nn.Linear(width, 7)
        self.convs = nn.ModuleList([nn.Conv2d(width, width, (k, k), padding=k // 2) for k in (1, 3, 5)])

    def forward(self, x):
        m, s = x.mean(1, keepdim=True), x.std(1, keepdim=True, unbiased=False) + 1e-5
        h = self.embed(((x - m) / s).transpose(1, 2))
        power = torch.view_as_real(torch.fft.rfft(h)).pow(2).sum(-1).mean(1)
        kept, weights = [], []
        for period in (24, 12, 8):
            y = h.unflatten(2, (h.shape[2] // period, period))
            y = sum(c(y) for c in self.convs) / 3
            kept.append(F.gelu(y).flatten(2))
            weights.append(power[:, h.shape[2] // period])
        w = torch.softmax(torch.stack(weights, 1), 1)
        h = h + (torch.stack(kept, 1) * w[:, :, None, None]).sum(1)
        return self.head(h.transpose(1, 2)) * s + m


class Nbeats(nn.Module):
    def __init__(self, steps=60, ahead=20):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(steps, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
                                                   nn.Linear(128, 8)) for _ in range(4)])
        t = torch.linspace(0, 1, steps + ahead)
        self.register_buffer("basis", torch.stack([t ** i for i in range(4)] + [torch.sin(6.28 * t * i) for i in (1, 2, 3, 4)]))
        self.steps = steps

    def forward(self, x):
        total = 0
        for b in self.blocks:
            y = b(x) @ self.basis
            x, total = x - y[:, :self.steps], total + y[:, self.steps:]
        return total


class ConvTasNet(nn.Module):
    """Speech apart: a learned transform, dilated depthwise convolutions with global norms, masks, its inverse."""

    def __init__(self, n=64):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, n, 16, 8, bias=False), nn.ConvTranspose1d(n, 1, 16, 8, bias=False)
        self.blocks = nn.ModuleList([nn.Sequential(
            nn.Conv1d(n, 2 * n, 1), nn.PReLU(), nn.GroupNorm(1, 2 * n),
            nn.Conv1d(2 * n, 2 * n, 3, padding=2 ** i, dilation=2 ** i, groups=2 * n), nn.PReLU(),
            nn.GroupNorm(1, 2 * n), nn.Conv1d(2 * n, n, 1)) for i in range(6)])
        self.mask = nn.Conv1d(n, 2 * n, 1)

    def forward(self, wave):
        e = F.relu(self.encode(wave))
        x = e
        for b in self.blocks:
            x = x + b(x)
        m = self.mask(x).sigmoid().unflatten(1, (2, -1))
        y = (m * e.unsqueeze(1)).flatten(0, 1)
        return self.decode(y).unflatten(0, (-1, 2)).squeeze(2)


class WaveNet(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.first = nn.Conv1d(1, n, 1)
        self.gates = nn.ModuleList([nn.Conv1d(n, 2 * n, 2, dilation=2 ** i) for i in range(8)])
        self.outs = nn.ModuleList([nn.Conv1d(n, 2 * n, 1) for i in range(8)])
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(n, 64, 1), nn.ReLU(), nn.Conv1d(64, 256, 1))

    def forward(self, wave):
        x, total = self.first(wave), 0
        for i in range(8):
            a, b = self.gates[i](F.pad(x, (2 ** i, 0))).chunk(2, 1)
            r, s = self.outs[i](a.tanh() * b.sigmoid()).chunk(2, 1)
            x, total = x + r, total + s
        return self.head(total)


class Spectrum(nn.Module):
    """torch.stft, a mask, and torch.istft's work by a fold."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(129, 64, batch_first=True)
        self.mask = nn.Linear(64, 129)
        self.register_buffer("window", torch.hann_window(256))

    def forward(self, wave):
        s = torch.view_as_real(torch.stft(wave, 256, 128, window=self.window, center=True, return_complex=True))
        p = torch.log1p((s ** 2).sum(-1)).transpose(1, 2)
        return s * self.mask(self.cell(p)[0]).sigmoid().transpose(1, 2).unsqueeze(-1)


class Kan(nn.Module):
    """B-splines of each input, by the recursion."""

    def __init__(self, widths=(8, 32, 4), order=3, cells=5):
        super().__init__()
        self.order = order
        h = 2 / cells
        self.register_buffer("grid", torch.arange(-order, cells + order + 1) * h - 1)
        self.splines = nn.ParameterList([torch.randn(o, i, cells + order) * 0.1 for i, o in zip(widths, widths[1:])])
        self.bases = nn.ModuleList([nn.Linear(i, o) for i, o in zip(widths, widths[1:])])

    def forward(self, x):
        for w, base in zip(self.splines, self.bases):
            v, g = x.unsqueeze(-1), self.grid
            b = ((v >= g[:-1]) & (v < g[1:])).to(x.dtype)
            for k in range(1, self.order + 1):
                b = (v - g[:-k - 1]) / (g[k:-1] - g[:-k - 1]) * b[..., :-1] + (g[k + 1:] - v) / (g[k + 1:] - g[1:-k]) * b[..., 1:]
            x = base(F.silu(x)) + torch.einsum("bik,oik->bo", b, w)
        return x


class Flow(nn.Module):
    """A normalising flow: halves that shift and scale each other, a permutation, the logarithm of the determinant."""

    def __init__(self, width=16):
        super().__init__()
        self.nets = nn.ModuleList([nn.Sequential(nn.Linear(width // 2, 64), nn.ReLU(), nn.Linear(64, width)) for _ in range(4)])
        self.w = nn.ParameterList([torch.linalg.qr(torch.randn(width, width))[0] for _ in range(4)])

    def forward(self, x):
        total = torch.zeros(x.shape[0])
        for net, w in zip(self.nets, self.w):
            a, b = (x @ w).chunk(2, 1)
            s, t = net(a).chunk(2, 1)
            s = torch.tanh(s)
            x = torch.cat([b * s.exp() + t, a], 1)
            total = total + s.sum(1)
        return x, -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(1) + total


class LinearAttention(nn.Module):
    """Elu + 1 in place of Softmax, causal by running sums."""

    def __init__(self, n=64, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(n, 3 * n), nn.Linear(n, n), heads

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        s = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 2)
        y = torch.einsum("bhnd,bhnde->bhne", q, s) / torch.einsum("bhnd,bhnd->bhn", q, k.cumsum(2)).unsqueeze(-1)
        return self.out(y.transpose(1, 2).flatten(2))


class Crf(nn.Module):
    """The best path through a sentence's labels, forwards and backwards, steps written out."""

    def __init__(self, labels=9, width=32):
        super().__init__()
        self.cell = nn.LSTM(width, 32, batch_first=True, bidirectional=True)
        self.head, self.move = nn.Linear(64, labels), nn.Parameter(torch.randn(labels, labels))

    def forward(self, x):
        e = self.head(self.cell(x)[0])
        s, back = e[:, 0], []
        for t in range(1, e.shape[1]):
            s, i = (s.unsqueeze(2) + self.move).max(1)
            s = s + e[:, t]
            back.append(i)
        best = s.argmax(1, keepdim=True)
        path = [best]
        for i in reversed(back):
            path.append(torch.gather(i, 1, path[-1]))
        return torch.cat(path[::-1], 1), s.amax(1)


class Decay(nn.Module):
    """Retention: scores by a decay of distance, a norm of groups, a gate."""

    def __init__(self, n=64, heads=4):
        super().__init__()
        self.q, self.k, self.v, self.g, self.o = [nn.Linear(n, n, bias=False) for _ in range(5)]
        self.norm, self.heads = nn.GroupNorm(heads, n), heads
        self.register_buffer("gamma", 1 - 2.0 ** (-5 - torch.arange(heads)))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = [f(x).view(b, n, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)]
        i = torch.arange(n)
        m = torch.where(i[:, None] >= i, self.gamma[:, None, None] ** (i[:, None] - i).clamp(min=0).float(), 0.0)
        y = ((q @ k.transpose(2, 3)) * m @ v).transpose(1, 2).reshape(b * n, d)
        return self.o(F.silu(self.g(x)) * self.norm(y).view(b, n, d))


class Delta(nn.Module):
    """A delta rule: a state of keys and values, a step a token, steps written out."""

    def __init__(self, n=32):
        super().__init__()
        self.q, self.k, self.v, self.b = nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, 1)

    def forward(self, x):
        q, k, v = self.q(x), F.normalize(self.k(x), dim=-1), self.v(x)
        b, s, kept = self.b(x).sigmoid(), torch.zeros(x.shape[0], x.shape[2], x.shape[2]), []
        for t in range(x.shape[1]):
            old = torch.einsum("bij,bj->bi", s, k[:, t])
            s = s + torch.einsum("bi,bj->bij", b[:, t] * (v[:, t] - old), k[:, t])
            kept.append(torch.einsum("bij,bj->bi", s, q[:, t]))
        return torch.stack(kept, 1)


class Sorted(nn.Module):
    """Sorts, medians, quantiles by index, buckets, one-hot, a histogram: what preparation in a graph does."""

    def forward(self, x):
        s, i = x.sort(1)
        r = torch.zeros_like(i).scatter(1, i, torch.arange(x.shape[1]).expand_as(i))
        b = torch.bucketize(x, torch.linspace(-2, 2, 9))
        h = F.one_hot(b, 10).sum(1)
        return s[:, x.shape[1] // 2], r, h, x.cumsum(1), torch.where(x > 0, x, x.new_zeros(())).nan_to_num(), \
            x.roll(3, 1), x.flip(1), x.unfold(1, 8, 4).amax(2), (x.abs() + 1).log2().fmod(0.3), torch.atan2(x, s)


ALL = {
    "fourier": plain(Fourier, torch.randn(1, 1, 64, 64)),
    "timesnet": plain(TimesNet, torch.randn(2, 96, 7)),
    "nbeats": plain(Nbeats, torch.randn(4, 60), open=[[0]]),
    "conv_tasnet": plain(ConvTasNet, torch.randn(1, 1, 8000), open=[[0]]),
    "wavenet": plain(WaveNet, torch.randn(1, 1, 4000), open=[[0, 2]]),
    "spectrum": plain(Spectrum, torch.randn(1, 8000)),
    "kan": plain(Kan, torch.rand(64, 8) * 1.8 - 0.9, open=[[0]]),
    "flow": plain(Flow, torch.randn(64, 16), open=[[0]]),
    "linear_attention": plain(LinearAttention, torch.randn(2, 64, 64), open=[[0, 1]]),
    "crf": plain(Crf, torch.randn(2, 20, 32)),
    "retention": plain(Decay, torch.randn(2, 48, 64), open=[[0, 1]]),
    "delta_rule": plain(Delta, torch.randn(2, 24, 32)),
    "preparation": plain(Sorted, torch.randn(4, 100)),
}
