"""Rounds of measurements become rows, rows become docs/log/perf.md."""
import datetime
import os
import platform
from statistics import median


def statistics_of(peer, own):
    """Of one engine against the peer: medians over rounds, and ratios taken round by round."""
    def ratios(key, flip=False):
        return [o[key] / p[key] if flip else p[key] / o[key] for p, o in zip(peer, own)]
    speed = ratios("ms")
    return {"peer_ms": median(p["ms"] for p in peer), "ms": median(o["ms"] for o in own), "ratio": median(speed),
            "low": min(speed), "high": max(speed), "rss": median(ratios("rss", True)), "rss_mib": median(o["rss"] for o in own),
            "load": median(ratios("load", True)), "load_ms": median(o["load"] for o in own)}


def speed_of(peer, own):
    """(median, smallest, largest) of the rounds' ratios, and the peer's median milliseconds."""
    speed = [p["ms"] / o["ms"] for p, o in zip(peer, own)]
    return median(speed), min(speed), max(speed), median(p["ms"] for p in peer)


COLUMNS = [
    ("model", lambda r: r["label"]),
    ("batch", lambda r: "%d" % r["batch"]),
    ("threads", lambda r: "%d" % r["threads"]),
    ("precision", lambda r: r["precision"]),
    ("hone ms", lambda r: "%.4g" % r["ms"]),
    ("ORT ms", lambda r: "%.4g" % r["peer_ms"]),
    ("ORT / hone", lambda r: "**%.2f** (%.2f-%.2f)" % (r["ratio"], r["low"], r["high"])),
    ("OpenVINO / hone", lambda r: "**%.2f** (%.2f-%.2f; %.4g ms)" % r["openvino"] if "openvino" in r else "-"),
    ("floor ms", lambda r: "%.4g %s" % r["floor"]),
    ("% of floor", lambda r: "%.0f" % (100 * r["floor"][0] / r["ms"])),
    ("RSS / ORT", lambda r: "%.2f (%.0f MiB)" % (r["rss"], r["rss_mib"])),
    ("load / ORT", lambda r: "%.2f (%.3g ms)" % (r["load"], r["load_ms"])),
    ("max error", lambda r: "%.1e" % r["error"]),
]
WITHOUT_FLOOR = [c for c in COLUMNS if "floor" not in c[0]]
TITLES = {
    "networks": ("The four networks", COLUMNS),
    "quantised": ("The four networks in 8 bits", WITHOUT_FLOOR),
    "variants": ("Other widths and sizes", WITHOUT_FLOOR),
    "operators": ("Operators, a model each", WITHOUT_FLOOR),
    "others": ("Other models", WITHOUT_FLOOR),
}
HEAD = """# Speed, memory and load time against ONNX Runtime

Written by `make bench-peers` (bench/peers); not edited by hand.

{when}, {machine}{tier}, {cpus} processors, {system}. {version}, commit {commit}; ONNX Runtime {peer} (CPU, all optimisations){openvino}.
{rounds} interleaved rounds, {minutes:.0f} minutes. Measured roofs (GFLOP/s, GOP/s, GB/s): {roofs}.

- ORT / hone: above 1 hone is faster; median of the rounds' ratios (smallest-largest). Against ONNX Runtime's
  f32; models in 8 bits: against ONNX Runtime on the same file. OpenVINO / hone: the same against OpenVINO on the same
  file in the same arithmetic (f32, or bf16 for `--precision bf16`); - where it is not installed or refuses the file.
- floor: FLOPs as the model writes them over the measured peak of the fastest unit (f32: multiply-add, or six products
  of bf16 parts), or every weight once over the DRAM bandwidth, whichever takes longer. Winograd and caches may go below
  it.
- RSS: peak of hone's whole process over the peer's growth after its imports. load: the whole `hone run` process,
  nothing cached, over the peer's session and first output without its imports.
- max error: against ONNX Runtime's answer on the same inputs, relative to the range of the output.
"""


def tier():
    name = os.environ.get("HONE_CPU")
    hidden = {"avx2": "AVX-512 and AVX-VNNI", "avxvnni": "AVX-512"}.get(name)
    peers = ", and the peers shown a processor without " + hidden if hidden else ""
    return " restricted to HONE_CPU=%s%s" % (name, peers) if name else ""


class Report:
    def __init__(self, roofs, version, commit, rounds):
        self.roofs, self.version, self.commit, self.rounds = roofs, version, commit, rounds
        self.rows = {s: [] for s in TITLES}
        self.remarks = {s: [] for s in TITLES}
        self.peer_version, self.seconds, self.last = "", 0, None
        self.openvino_version = ""

    def add(self, section, row):
        self.rows[section].append(row)
        self.last = row

    def say(self, section, text):
        self.remarks[section].append(text)

    def last_line(self):
        text = "%(label)s, batch %(batch)d, %(threads)d threads, %(precision)s: %(ms).4g ms, ORT / hone %(ratio).2f" % self.last
        return text + (", OpenVINO / hone %.2f" % self.last["openvino"][0] if "openvino" in self.last else "")

    def markdown(self):
        out = [HEAD.format(when=datetime.date.today().isoformat(), machine=self.roofs.machine,
                           tier=tier(), cpus=os.cpu_count(),
                           system=platform.system() + " " + platform.machine(), version=self.version, commit=self.commit,
                           peer=self.peer_version,
                           openvino=", OpenVINO " + self.openvino_version if self.openvino_version else "", rounds=self.rounds, minutes=self.seconds / 60,
                           roofs="; ".join(self.roofs.lines()))]
        for section, (title, columns) in TITLES.items():
            if not self.rows[section] and not self.remarks[section]:
                continue
            out.append("\n## %s\n" % title)
            if self.rows[section]:
                out.append("| " + " | ".join(name for name, _ in columns) + " |")
                out.append("|" + "---|" * len(columns))
                out += ["| " + " | ".join(show(r) for _, show in columns) + " |" for r in self.rows[section]]
            out += ["\n" + remark for remark in self.remarks[section]]
        return "\n".join(out) + "\n"
