"""Is the advice true? Runs `hone MODEL` over networks and settings and compares what was predicted, before anything was changed, with
what was measured afterwards.

usage: truth.py HONE [--models FOLDER] [--out docs/log/advice-truth.md] [--only GLOB] [--rows FILE] [--seconds N] [--others PCT]

A case counts when the measured saving is at least three times its measurement error; it is met when the predicted saving is within 25 %
of the measured one. Findings are scored by the basis of their S: those measured in the profile apart from rooflines and tables.

A case beside which other processes took more than --others percent of the processors is run again, three times at most, whatever came out;
the quietest run counts.

The whole list takes a while. With --rows every case is kept in FILE as it ends and is not run again, so that the list can be run in parts
(--seconds: begin no case after that long); rows of another build of hone are dropped. When the list is complete --out is written and FILE
is removed."""
import argparse
import datetime
import fnmatch
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

# Built-in networks: name | options of `hone zoo` | options of `hone`
NETWORKS = """
resnet50    |                         |
resnet50    |                         | -t 1
resnet50    |                         | -b 4
resnet50    |                         | --level 1
resnet50    |                         | --precision bf16
resnet50    | --width 0.5 --size 160  |
mobilenetv2 |                         |
mobilenetv2 |                         | -t 1
mobilenetv2 |                         | -b 8
mobilenetv2 |                         | --level 1
mobilenetv2 | --width 0.35 --size 96  |
mobilenetv2 | --width 1.4             | -t 1
yolov3      |                         |
yolov3      | --width 0.25 --size 224 |
bert_base   |                         |
bert_base   |                         | -t 1
bert_base   |                         | --precision bf16
bert_base   | --width 0.5 --size 64   |
res3_conv3  |                         |
res3_block  |                         |
res3_block  |                         | -b 8 -t 1
many_inputs |                         |
"""
FILES = [[], ["-t", "1"]]  # options of `hone` for every file of --models


def cases(models):
    """(name, model, options of `hone zoo` or None for a file, options of `hone`)"""
    for line in NETWORKS.strip().splitlines():
        name, zoo, options = (part.strip() for part in line.split("|"))
        yield " ".join(filter(None, ["zoo:" + name, zoo, options])), name, zoo.split(), options.split()
    for folder, _, files in sorted(os.walk(models)) if models else []:
        for f in sorted(files):
            for options in FILES if f.endswith(".onnx") else []:
                yield " ".join([os.path.relpath(os.path.join(folder, f), models), *options]), os.path.join(folder, f), None, options


def median_error(samples):
    """Standard error of a median, from the distance of its neighbours in rank: no assumption about the shape of the noise."""
    s, n = sorted(samples), len(samples)
    half = max(1, round(math.sqrt(n) / 2))
    low, high = max(0, n // 2 - half), min(n - 1, n // 2 + half)
    return (s[high] - s[low]) / 2


def processors():
    """Seconds that all processors have worked, and the share of it that was this process' children's."""
    with open("/proc/stat") as f:
        user, nice, system, _, _, irq, softirq, steal = map(int, f.readline().split()[1:9])
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def run(hone, model, zoo, options, folder):
    if zoo is not None:
        path = os.path.join(folder, "model.onnx")
        subprocess.run([hone, "zoo", model, *zoo, "-o", path], check=True, capture_output=True, timeout=100)
        model = path
    start, (all_before, own_before) = time.monotonic(), processors()
    p = subprocess.run([hone, model, "--json", "--no-cache", "--inputs", "2", "--output-dir", folder, *options], capture_output=True,
                       text=True, timeout=600)
    all_after, own_after = processors()
    if p.returncode not in (0, 5):
        return None, (p.stderr.strip().splitlines() or ["no answer"])[-1]
    others = (all_after - all_before - (own_after - own_before)) / (time.monotonic() - start) / os.cpu_count()
    return {**json.loads(p.stdout), "others": 100 * max(0, others)}, ""


def quiet_run(hone, model, zoo, options, folder, most):
    best, why = None, ""
    for _ in range(3):
        report, why = run(hone, model, zoo, options, folder)
        if report is None:
            return best, why
        if best is None or report["others"] < best["others"]:
            best = report
        if best["others"] <= most:
            break
    return best, why


def row(name, report):
    a, b = report["baseline"], report["optimized"]
    before, after = statistics.median(a["samples_ms"]), statistics.median(b["samples_ms"])
    error = 100 * math.hypot(median_error(a["samples_ms"]), median_error(b["samples_ms"])) / before
    gain, measured = report["prediction"]["gain_pct"], 100 * (1 - after / before)
    predicted = 100 * (1 - 1 / (1 + gain / 100))
    findings = [{k: f[k] for k in ("id", "basis", "predicted_saved_pct", "measured_saved_pct")} for f in report["findings"]
                if f["remedy"] == "optimizer" and f["measured_saved_pct"] is not None]
    return {"name": name, "before": before, "after": after, "measured": measured, "error": error, "predicted": predicted,
            "scored": measured >= 3 * error, "met": abs(predicted - measured) <= 0.25 * measured, "findings": findings, "others": report["others"],
            "machine": report["machine"], "version": report["hone_version"]}


def told(r):
    verdict = ("met" if r["met"] else "missed") if r["scored"] else "not scored"
    return (f"{r['name']:52} {r['before']:9.3f} -> {r['after']:9.3f} ms  saved: predicted {r['predicted']:5.1f} %, measured "
            f"{r['measured']:5.1f} % (+-{r['error']:.1f}), others {r['others']:2.0f} %  {verdict}")


def kept(path, version):
    """The rows of an earlier part of this list, if this build made them."""
    if not path or not os.path.exists(path):
        return {}
    with open(path) as f:
        rows = [json.loads(line) for line in f]
    return {r["name"]: r for r in rows if r["build"] == version}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("hone")
    ap.add_argument("--models", default="")
    ap.add_argument("--out", default="")
    ap.add_argument("--only", default="*")
    ap.add_argument("--rows", default="")
    ap.add_argument("--seconds", type=float, default=math.inf)
    ap.add_argument("--others", type=float, default=10)
    args = ap.parse_args()
    start, build = time.monotonic(), os.stat(args.hone).st_mtime
    if args.models and not os.path.isdir(args.models):
        print(f"SKIP: no folder {args.models}: the built-in networks only", file=sys.stderr)
    wanted = [c for c in cases(args.models) if fnmatch.fnmatch(c[0], args.only)]
    done = kept(args.rows, build)
    log = open(args.rows + ".new", "w") if args.rows else None
    if log:
        log.writelines(json.dumps(r) + "\n" for r in done.values())
        log.flush()
        os.replace(args.rows + ".new", args.rows)
    with tempfile.TemporaryDirectory() as temp:
        for name, model, zoo, options in wanted:
            if name in done:
                continue
            if time.monotonic() - start > args.seconds:
                print(f"{len(done)} of {len(wanted)} cases done; the same command goes on")
                sys.exit(2)
            report, why = quiet_run(args.hone, model, zoo, options, temp, args.others)
            done[name] = {**row(name, report), "build": build} if report else {"name": name, "why": why, "build": build}
            print(told(done[name]) if report else f"{name}: left out: {why}", flush=True)
            if log:
                log.write(json.dumps(done[name]) + "\n")
                log.flush()
    rows, left_out = [done[c[0]] for c in wanted if "why" not in done[c[0]]], [done[c[0]] for c in wanted if "why" in done[c[0]]]
    if not rows:
        sys.exit("no case ran")
    text, share = summary(rows, left_out)
    if args.out:
        with open(args.out + ".new", "w") as f:
            f.write(text)
        os.replace(args.out + ".new", args.out)
        if args.rows:
            os.remove(args.rows)
    print(text[text.index("**"):].split("\n")[0])
    sys.exit(0 if share >= 80 else 1)


def summary(rows, left_out):
    m = rows[0]["machine"]
    scored = [r for r in rows if r["scored"]]
    met = sum(r["met"] for r in scored)
    share = 100 * met / len(scored) if scored else 0
    empty = sum(r["predicted"] >= 3 * r["error"] for r in rows if not r["scored"])
    out = ["# Is the advice true?", "",
           "`make bench-advice` writes this file. Each row is one `hone MODEL`: the prediction was stored with its time and basis",
           "before the changed plan was built (prediction.json), both plans were then measured in alternation. Savings are shares of",
           "the time before. A case is scored when the measured saving is at least three times its error, and met when the predicted",
           "saving is within 25 % of it. The prediction rests on the new plan's steps timed one by one on this very machine",
           "(docs/reference/findings.md, Forecast). Plans are untuned (--no-cache). others: the share of the processors that other",
           "processes took meanwhile; a case with more than 10 % is run again, three times at most, whatever came out, and the",
           "quietest run counts.",
           "",
           f"{datetime.date.today().isoformat()}, hone {rows[0]['version']}, {m['device']}, {m['isa']}, {m['threads']:g} threads, {platform.system()}.", "",
           f"**{met} of {len(scored)} within 25 %: {share:.0f} %** (wanted: 80 %); {len(rows) - len(scored)} not scored, of which {empty} had "
           "promised more than that.", "",
           "| model | before ms | after ms | predicted saving | measured saving | error | others | |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        verdict = ("met" if r["met"] else "missed") if r["scored"] else "not scored"
        out.append(f"| {r['name']} | {r['before']:.3f} | {r['after']:.3f} | {r['predicted']:.1f} % | {r['measured']:.1f} % | {r['error']:.1f} | "
                   f"{r['others']:.0f} % | {verdict} |")
    by_basis = {}
    for r in rows:
        for f in r["findings"]:
            if f["measured_saved_pct"] >= 3 * r["error"]:
                by_basis.setdefault(f["basis"], []).append((f["predicted_saved_pct"], f["measured_saved_pct"]))
    out += ["", "## Findings that hone optimize removes, by the basis of S", "",
            "What a step of the new plan saved is divided among the findings that promised some of it, as they promised it: several findings often",
            "name neighbours that end up in one step.", "",
            "| basis | findings | within 25 % | median predicted / measured |", "|---|---|---|---|"]
    for basis, pairs in sorted(by_basis.items()):
        close = sum(abs(p - x) <= 0.25 * x for p, x in pairs)
        out.append(f"| {basis} | {len(pairs)} | {close} | {statistics.median(p / x for p, x in pairs):.2f} |")
    if left_out:
        out += ["", "Left out: " + "; ".join(f"{r['name']} ({r['why']})" for r in left_out) + "."]
    return "\n".join(out) + "\n", share


main()
