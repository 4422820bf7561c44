"""Is the advice true? Runs `hone MODEL` over networks and settings and compares what was predicted, before anything was changed, with
what was measured afterwards.

usage: truth.py HONE [--models FOLDER] [--out docs/advice-truth.md] [--only GLOB]

A case counts when the measured saving is at least three times its measurement error; it is met when the predicted saving is within 25 %
of the measured one. Findings are scored by the basis of their S: those measured in the profile apart from rooflines and tables."""
import argparse
import datetime
import fnmatch
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile

NETWORKS = [("resnet50", []), ("resnet50", ["-t", "1"]), ("resnet50", ["-b", "4"]), ("mobilenetv2", []), ("mobilenetv2", ["-t", "1"]),
            ("mobilenetv2", ["-b", "8"]), ("yolov3", []), ("bert_base", []), ("bert_base", ["-t", "1"]), ("res3_conv3", []),
            ("res3_block", []), ("many_inputs", []), ("resnet50", ["--level", "1"]), ("mobilenetv2", ["--level", "1"]),
            ("resnet50", ["--precision", "bf16"]), ("bert_base", ["--precision", "bf16"])]


def median_error(samples):
    """Standard error of a median, from the distance of its neighbours in rank: no assumption about the shape of the noise."""
    s, n = sorted(samples), len(samples)
    half = max(1, round(math.sqrt(n) / 2))
    low, high = max(0, n // 2 - half), min(n - 1, n // 2 + half)
    return (s[high] - s[low]) / 2


def run(hone, model, options, folder):
    p = subprocess.run([hone, model, "--json", "--inputs", "2", "--output-dir", folder, *options], capture_output=True, text=True,
                       timeout=600)
    if p.returncode not in (0, 5):
        return None, (p.stderr.strip().splitlines() or ["no answer"])[-1]
    return json.loads(p.stdout), ""


def case(report):
    a, b = report["baseline"], report["optimized"]
    before, after = statistics.median(a["samples_ms"]), statistics.median(b["samples_ms"])
    error = 100 * math.hypot(median_error(a["samples_ms"]), median_error(b["samples_ms"])) / before
    gain = report["prediction"]["gain_pct"]
    return {"before": before, "after": after, "measured": 100 * (1 - after / before), "error": error,
            "predicted": 100 * (1 - 1 / (1 + gain / 100)), "made": report["prediction"]["made"], "findings": report["findings"]}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("hone")
    ap.add_argument("--models", default="")
    ap.add_argument("--out", default="")
    ap.add_argument("--only", default="*")
    args = ap.parse_args()
    cases = [("zoo:" + name, options) for name, options in NETWORKS]
    for folder, _, files in sorted(os.walk(args.models)) if args.models else []:
        cases += [(os.path.join(folder, f), []) for f in sorted(files) if f.endswith(".onnx")]
    rows, left_out, by_basis = [], [], {}
    with tempfile.TemporaryDirectory() as temp:
        for model, options in cases:
            name = (model if model.startswith("zoo:") else os.path.basename(model)) + (" " + " ".join(options) if options else "")
            if not fnmatch.fnmatch(name, args.only):
                continue
            report, why = run(args.hone, model, options, temp)
            if not report:
                left_out.append((name, why))
                print(f"{name}: left out: {why}", file=sys.stderr)
                continue
            c = case(report)
            c["name"], c["version"], c["machine"] = name, report["tool_version"] + " " + (report["commit"] or ""), report["machine"]
            c["scored"] = c["measured"] >= 3 * c["error"]
            c["met"] = abs(c["predicted"] - c["measured"]) <= 0.25 * c["measured"]
            rows.append(c)
            for f in c["findings"]:
                if f["remedy"] == "optimizer" and f["measured_saved_pct"] is not None and f["measured_saved_pct"] >= 3 * c["error"]:
                    basis = f["s_basis"].split(":")[0]
                    by_basis.setdefault(basis, []).append((f["predicted_saved_pct"], f["measured_saved_pct"]))
            verdict = "met" if c["met"] else "missed"
            print(f"{name:44} {c['before']:9.3f} -> {c['after']:9.3f} ms  saved: predicted {c['predicted']:5.1f} %, measured "
                  f"{c['measured']:5.1f} % (+-{c['error']:.1f})  {verdict if c['scored'] else 'not scored'}", flush=True)
    scored = [c for c in rows if c["scored"]]
    met = sum(c["met"] for c in scored)
    share = 100 * met / len(scored) if scored else 0
    print(f"{met} of {len(scored)} scored predictions within 25 % of the measured saving: {share:.0f} %; {len(rows) - len(scored)} not scored")
    for basis, pairs in sorted(by_basis.items()):
        close = sum(abs(p - m) <= 0.25 * m for p, m in pairs)
        print(f"findings, S {basis}: {close} of {len(pairs)} within 25 %, median ratio {statistics.median(p / m for p, m in pairs):.2f}")
    if args.out and rows:
        write(args.out, rows, scored, met, share, by_basis, left_out)
    sys.exit(0 if scored and share >= 80 else 1)


def write(path, rows, scored, met, share, by_basis, left_out):
    m = rows[0]["machine"]
    out = ["# Is the advice true?", "",
           "`make bench-advice` writes this file. Each row is one `hone MODEL`: the prediction was stored with its time and basis before the",
           "changed plan was built (prediction.json), both plans were then measured in alternation. Savings are shares of the time before.",
           "A case is scored when the measured saving is at least three times its error, and met when the predicted saving is within 25 % of it.",
           "",
           f"{datetime.date.today().isoformat()}, hone {rows[0]['version']}, {m['device']}, {m['threads']:g} threads, {platform.system()}.", "",
           f"**{met} of {len(scored)} within 25 %: {share:.0f} %** (wanted: 80 %); {len(rows) - len(scored)} not scored.", "",
           "| model | before ms | after ms | predicted saving | measured saving | error | |", "|---|---|---|---|---|---|---|"]
    for c in rows:
        verdict = ("met" if c["met"] else "missed") if c["scored"] else "not scored"
        out.append(f"| {c['name']} | {c['before']:.3f} | {c['after']:.3f} | {c['predicted']:.1f} % | {c['measured']:.1f} % | {c['error']:.1f} | {verdict} |")
    out += ["", "## Findings that hone optimize removes, by the basis of S", "",
            "A finding's measured saving is that of the nodes it names; where several findings name neighbours that end up in one step, the",
            "step's gain cannot be divided without an opinion, so these ratios are coarser than those of whole networks.", "",
            "| basis | findings | within 25 % | median predicted / measured |", "|---|---|---|---|"]
    for basis, pairs in sorted(by_basis.items()):
        close = sum(abs(p - x) <= 0.25 * x for p, x in pairs)
        out.append(f"| {basis} | {len(pairs)} | {close} | {statistics.median(p / x for p, x in pairs):.2f} |")
    if left_out:
        out += ["", "Left out: " + "; ".join(f"{n} ({w})" for n, w in left_out) + "."]
    with open(path + ".new", "w") as f:
        f.write("\n".join(out) + "\n")
    os.replace(path + ".new", path)


main()
