"""Networks of a few lines on points, pictures, volumes and graphs; exported_further.py exports them."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from exporting import plain


class PointNet2(nn.Module):
    """Points: the farthest in turn, groups of the nearest, a maximum over each group."""

    def __init__(self, centres=32, near=16):
        super().__init__()
        self.centres, self.near = centres, near
        self.a = nn.Sequential(nn.Conv2d(6, 32, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU())
        self.head = nn.Linear(64, 10)

    def forward(self, points):
        d = torch.full(points.shape[:2], 1e10)
        pick = torch.zeros(points.shape[0], 1, dtype=torch.long)
        picks = []
        for _ in range(self.centres):
            picks.append(pick)
            c = torch.gather(points, 1, pick.unsqueeze(2).expand(-1, -1, 3))
            d = torch.minimum(d, ((points - c) ** 2).sum(2))
            pick = d.argmax(1, keepdim=True)
        pick = torch.cat(picks, 1)
        centre = torch.gather(points, 1, pick.unsqueeze(2).expand(-1, -1, 3))
        near = torch.cdist(centre, points).topk(self.near, 2, largest=False)[1]
        flat = near.flatten(1).unsqueeze(2).expand(-1, -1, 3)
        group = torch.gather(points, 1, flat).unflatten(1, (self.centres, self.near))
        x = torch.cat([group - centre.unsqueeze(2), group], 3).permute(0, 3, 1, 2)
        return self.head(self.a(x).amax(3).amax(2))


class EdgeConv(nn.Module):
    """DGCNN: the graph of the nearest in the space of features, anew in every layer."""

    def __init__(self, near=12):
        super().__init__()
        self.near = near
        self.layers = nn.ModuleList([nn.Conv2d(6, 32, 1), nn.Conv2d(64, 32, 1), nn.Conv2d(64, 64, 1)])
        self.head = nn.Linear(128, 10)

    def forward(self, x):
        kept = []
        for layer in self.layers:
            inner = -2 * torch.matmul(x.transpose(2, 1), x)
            xx = (x ** 2).sum(1, keepdim=True)
            near = (-xx - inner - xx.transpose(2, 1)).topk(self.near, -1)[1]
            b, n, k = near.shape
            rows = (near + torch.arange(b).view(-1, 1, 1) * n).view(-1)
            y = x.transpose(2, 1).reshape(b * n, -1)[rows].view(b, n, k, -1)
            c = x.transpose(2, 1).unsqueeze(2).expand(-1, -1, k, -1)
            x = F.leaky_relu(layer(torch.cat([y - c, c], 3).permute(0, 3, 1, 2)), 0.2).amax(3)
            kept.append(x)
        return self.head(torch.cat(kept, 1).amax(2))


class Nerf(nn.Module):
    """Rays: positions as sines, layers, then light added up along each ray."""

    def __init__(self, width=128):
        super().__init__()
        self.register_buffer("scale", 2.0 ** torch.arange(8))
        self.layers = nn.Sequential(nn.Linear(3 + 48, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                    nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, origin, direction, depth):
        p = origin[:, None] + direction[:, None] * depth[..., None]
        a = (p[..., None] * self.scale).flatten(-2)
        y = self.layers(torch.cat([p, a.sin(), a.cos()], -1))
        step = torch.cat([depth[:, 1:] - depth[:, :-1], torch.full_like(depth[:, :1], 1e10)], 1)
        alpha = 1 - torch.exp(-F.relu(y[..., 3]) * step)
        t = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
        w = alpha * t
        return (w[..., None] * y[..., :3].sigmoid()).sum(1), (w * depth).sum(1)


class HashGrid(nn.Module):
    """Instant neural graphics: hashes of corners by products of integers and exclusive ors, then eight looked up."""

    def __init__(self, levels=4, size=4096):
        super().__init__()
        self.levels, self.size = levels, size
        self.table = nn.Parameter(torch.randn(levels, size, 2))
        self.register_buffer("corner", torch.tensor([[i >> 2 & 1, i >> 1 & 1, i & 1] for i in range(8)]))
        self.head = nn.Sequential(nn.Linear(2 * levels, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        kept = []
        for i in range(self.levels):
            p = x * (16 * 2 ** i)
            low = p.floor()
            f = p - low
            c = low.long().unsqueeze(1) + self.corner
            h = (c[..., 0] ^ (c[..., 1] * 2654435761) ^ (c[..., 2] * 805459861)) % self.size
            w = torch.where(self.corner.bool(), f.unsqueeze(1), 1 - f.unsqueeze(1)).prod(-1)
            kept.append((self.table[i][h] * w.unsqueeze(-1)).sum(1))
        return self.head(torch.cat(kept, 1))


class Deformed(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Conv2d(16, 27, 3, padding=1)
        self.w = nn.Parameter(torch.randn(32, 16, 3, 3) / 12)
        self.first = nn.Conv2d(3, 16, 3, 2, 1)

    def forward(self, x):
        from torchvision.ops import deform_conv2d
        x = F.relu(self.first(x))
        o = self.offset(x)
        return deform_conv2d(x, o[:, :18], self.w, padding=1, mask=o[:, 18:].sigmoid())


class Transformed(nn.Module):
    """A spatial transformer: a small network says where a picture is sampled."""

    def __init__(self):
        super().__init__()
        self.where = nn.Sequential(nn.Conv2d(1, 8, 7), nn.MaxPool2d(2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 11 * 11, 6))
        self.head = nn.Sequential(nn.Conv2d(1, 16, 5), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 24 * 24, 10))

    def forward(self, x):
        t = self.where(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        return self.head(F.grid_sample(x, F.affine_grid(t, x.size(), align_corners=False), align_corners=False))


class Messages(nn.Module):
    """Messages with features of edges, a GRU cell at each node, a sum over each graph of a batch."""

    def __init__(self, n=32):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * n + 8, 64), nn.ReLU(), nn.Linear(64, n))
        self.cell, self.head = nn.GRUCell(n, n), nn.Linear(2 * n, 1)
        self.register_buffer("graph", torch.arange(100) // 13)

    def forward(self, x, edges, features):
        graph = self.graph
        for _ in range(3):
            m = self.edge(torch.cat([x[edges[0]], x[edges[1]], features], 1))
            x = self.cell(torch.zeros_like(x).index_add(0, edges[1], m), x)
        total = torch.zeros(8, x.shape[1]).index_add(0, graph, x)
        most = torch.full((8, x.shape[1]), -1e30).scatter_reduce(0, graph[:, None].expand_as(x), x, "amax")
        return self.head(torch.cat([total, most], 1))


class Triangle(nn.Module):
    """AlphaFold's update of pairs: products along triangles, gated, and attention with a bias of pairs."""

    def __init__(self, n=32):
        super().__init__()
        self.norm, self.ab, self.gate, self.out = nn.LayerNorm(n), nn.Linear(n, 4 * n), nn.Linear(n, n), nn.Linear(n, n)
        self.qkv, self.bias, self.last = nn.Linear(n, 3 * n), nn.Linear(n, 4, bias=False), nn.Linear(n, n)

    def forward(self, z):
        y = self.norm(z)
        a, b, ga, gb = self.ab(y).chunk(4, -1)
        a, b = a * ga.sigmoid(), b * gb.sigmoid()
        z = z + self.gate(y).sigmoid() * self.out(torch.einsum("bikc,bjkc->bijc", a, b))
        y = self.norm(z)
        q, k, v = self.qkv(y).unflatten(-1, (3, 4, -1)).permute(3, 0, 1, 4, 2, 5)
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.bias(y).permute(0, 3, 1, 2).unsqueeze(1)
        return z + self.last((s.softmax(-1) @ v).transpose(2, 3).flatten(3))


class Capsules(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 32, 9), nn.Conv2d(32, 64, 9, 2)
        self.w = nn.Parameter(torch.randn(10, 288, 16, 8) * 0.05)

    def forward(self, x):
        u = self.second(F.relu(self.first(x))).view(x.shape[0], 8, -1).transpose(1, 2)
        u = u / (1 + (u ** 2).sum(-1, keepdim=True)).sqrt()
        h = (self.w @ u[:, None, :, :, None]).squeeze(-1)
        b = torch.zeros(x.shape[0], 10, 288)
        for _ in range(3):
            s = (b.softmax(1).unsqueeze(-1) * h).sum(2)
            n = (s ** 2).sum(-1, keepdim=True)
            v = n / (1 + n) * s / (n + 1e-8).sqrt()
            b = b + (h * v.unsqueeze(2)).sum(-1)
        return v.norm(dim=-1)


class Volumes(nn.Module):
    """A UNet of volumes: instance norms, leaky units, transposed convolutions, skips."""

    def __init__(self, n=8):
        super().__init__()
        def block(a, b, s=1):
            return nn.Sequential(nn.Conv3d(a, b, 3, s, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01),
                                 nn.Conv3d(b, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))
        self.a, self.b, self.c = block(1, n), block(n, 2 * n, 2), block(2 * n, 4 * n, 2)
        self.up1, self.up2 = nn.ConvTranspose3d(4 * n, 2 * n, 2, 2), nn.ConvTranspose3d(2 * n, n, 2, 2)
        self.d, self.e, self.head = block(4 * n, 2 * n), block(2 * n, n), nn.Conv3d(n, 3, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        y = self.d(torch.cat([self.up1(self.c(b)), b], 1))
        return self.head(self.e(torch.cat([self.up2(y), a], 1)))


class SuperResolution(nn.Module):
    """Dense blocks with scaled residues, nearest doubling, as ESRGAN."""

    def __init__(self, n=16, g=8):
        super().__init__()
        self.first = nn.Conv2d(3, n, 3, 1, 1)
        self.convs = nn.ModuleList([nn.ModuleList([nn.Conv2d(n + i * g, g if i < 4 else n, 3, 1, 1) for i in range(5)])
                                    for _ in range(3)])
        self.up, self.last = nn.Conv2d(n, n, 3, 1, 1), nn.Conv2d(n, 3, 3, 1, 1)

    def forward(self, x):
        x = self.first(x)
        for convs in self.convs:
            kept = [x]
            for i, c in enumerate(convs):
                y = c(torch.cat(kept, 1))
                kept.append(F.leaky_relu(y, 0.2))
            x = x + 0.2 * y
        return self.last(F.leaky_relu(self.up(F.interpolate(x, scale_factor=2.0, mode="nearest")), 0.2))


class Styles(nn.Module):
    """StyleGAN: weights that are scaled by a style and normalised, a convolution with weights of each picture, noise, a blur."""

    def __init__(self, n=16):
        super().__init__()
        self.map = nn.Sequential(*[m for _ in range(4) for m in (nn.Linear(32, 32), nn.LeakyReLU(0.2))])
        self.start = nn.Parameter(torch.randn(1, n, 8, 8))
        self.styles = nn.ModuleList([nn.Linear(32, n) for _ in range(3)])
        self.w = nn.ParameterList([torch.randn(n, n, 3, 3) * 0.1 for _ in range(3)])
        k = torch.tensor([1.0, 3, 3, 1])
        self.register_buffer("blur", (k[:, None] * k[None] / 64)[None, None].repeat(n, 1, 1, 1))
        self.head = nn.Conv2d(n, 3, 1)

    def forward(self, z):
        w = self.map(z * (z ** 2).mean(1, keepdim=True).add(1e-8).rsqrt())
        x = self.start.repeat(z.shape[0], 1, 1, 1)
        for style, weight in zip(self.styles, self.w):
            k = weight[None] * (style(w) + 1)[:, None, :, None, None]
            k = k * (k ** 2).sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
            b, o, i, h, v = k.shape
            x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
            x = F.conv2d(x.reshape(1, b * i, x.shape[2], x.shape[3]), k.reshape(b * o, i, h, v), padding=1, groups=b).view(
                b, o, x.shape[2], x.shape[3])
            x = F.leaky_relu(F.conv2d(F.pad(x, (2, 1, 2, 1)), self.blur, groups=o), 0.2)
        return self.head(x).tanh()


ALL = {
    "pointnet2": plain(PointNet2, torch.randn(2, 512, 3)),
    "edge_conv": plain(EdgeConv, torch.randn(2, 3, 256)),
    "nerf": plain(Nerf, torch.randn(256, 3), torch.randn(256, 3), torch.rand(256, 32).sort(1)[0]),
    "hash_grid": plain(HashGrid, torch.rand(2048, 3)),
    "deformed": plain(Deformed, torch.randn(1, 3, 64, 64)),
    "transformed": plain(Transformed, torch.randn(4, 1, 28, 28)),
    "messages": plain(Messages, torch.randn(100, 32), torch.randint(0, 100, (2, 400)), torch.randn(400, 8)),
    "triangle": plain(Triangle, torch.randn(1, 24, 24, 32), open=[[1, 2]]),
    "capsules": plain(Capsules, torch.randn(2, 1, 28, 28)),
    "volumes": plain(Volumes, torch.randn(1, 1, 32, 32, 32)),
    "super_resolution": plain(SuperResolution, torch.randn(1, 3, 48, 64), open=[[0, 2, 3]]),
    "styles": plain(Styles, torch.randn(2, 32)),
}
