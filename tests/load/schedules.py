"""Schedules of hone against those of mlcommons-loadgen, for the same settings and seeds.

usage: schedules.py LOAD_SCHEDULE FOLDER
"""
import re
import subprocess
import sys

import mlperf_loadgen as lg

MLPERF = (2085463073848966840, 2747215439041700203, 16159082839903944936)
# scenario, samples, qps, min ms, min queries, samples a query, seeds
CASES = [
    ("server", 32, 1000, 20, 10, 1, MLPERF),
    ("server", 1, 5000, 10, 10, 1, MLPERF),
    ("server", 1024, 20000, 100, 100, 1, MLPERF),
    ("server", 70000, 40000, 25, 2000, 1, (1, 2, 3)),
    ("server", 7, 333.25, 0, 100, 1, (0, 0, 0)),
    ("server", 10833, 50000, 20, 500, 1, (2**64 - 1, 2**32, 2**63 + 5)),
    ("single", 1024, 10000, 0, 500, 1, MLPERF),
    ("single", 3, 10000, 1, 300, 1, (5, 6, 7)),
    ("single", 65536, 10000, 0, 100, 1, (5, 6, 7)),
    ("multi", 256, 10000, 0, 200, 8, MLPERF),
    ("multi", 5, 10000, 0, 100, 8, (9, 10, 11)),
    ("multi", 64, 10000, 0, 100, 3, (9, 10, 11)),
    ("offline", 100, 5000, 50, 64, 1, MLPERF),
    ("offline", 24, 1, 0, 600, 1, (4, 5, 6)),
]
SCENARIO = {
    "single": lg.TestScenario.SingleStream,
    "multi": lg.TestScenario.MultiStream,
    "server": lg.TestScenario.Server,
    "offline": lg.TestScenario.Offline,
}


def settings(case):
    scenario, samples, qps, ms, queries, query_samples, seeds = case
    s = lg.TestSettings()
    s.scenario, s.mode = SCENARIO[scenario], lg.TestMode.PerformanceOnly
    s.min_duration_ms, s.min_query_count = ms, queries
    s.server_target_qps = s.offline_expected_qps = qps
    s.single_stream_expected_latency_ns = s.multi_stream_expected_latency_ns = int(1e9 / qps)
    s.multi_stream_samples_per_query = query_samples
    s.qsl_rng_seed, s.sample_index_rng_seed, s.schedule_rng_seed = seeds
    return s


def theirs(case, folder):
    """[(ns since the first, [samples])] as LoadGen issued them; in the order of its own numbers."""
    queries = []

    def issue(samples):
        queries.append([x.index for x in samples])
        lg.QuerySamplesComplete([lg.QuerySampleResponse(x.id, 0, 0) for x in samples])

    log = lg.LogSettings()
    out = lg.LogOutputSettings()
    out.outdir, out.prefix = folder, "x_"
    log.log_output, log.enable_trace = out, True
    sut = lg.ConstructSUT(issue, lambda: None)
    qsl = lg.ConstructQSL(case[1], case[1], lambda x: None, lambda x: None)
    lg.StartTestWithLogSettings(sut, qsl, settings(case), log, "none")
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)
    due = {}
    if case[0] == "server":  # the trace says when a sample was due, in us with three digits
        trace = re.compile(r'"name":"Sample".*"ph":"b".*"ts":(\d+)\.(\d+),.*"query_seq":(\d+)')
        for line in open(f"{folder}/x_trace.json"):
            hit = trace.search(line)
            if hit:
                due[int(hit[3])] = int(hit[1]) * 1000 + int(hit[2])
        if sorted(due) != list(range(len(queries))):
            sys.exit(f"{case}: the trace has {len(due)} of {len(queries)} queries")
    start = min(due.values(), default=0)
    return [(due.get(i, 0) - start, q) for i, q in enumerate(queries)]


def ours(tool, case, queries):
    scenario, samples, qps, ms, least, query_samples, seeds = case
    args = [scenario, samples, repr(qps), ms, least, query_samples, *seeds, queries]
    text = subprocess.run([tool, *map(str, args)], check=True, capture_output=True, text=True).stdout
    rows = [[int(x) for x in line.split()] for line in text.splitlines()]
    return [(row[0], row[1:]) for row in rows]


def main():
    tool, folder = sys.argv[1:]
    for case in CASES:
        want = theirs(case, folder)
        # A single or multi stream ends by the clock: as many as LoadGen came to. The server's end is its schedule's.
        got = ours(tool, case, len(want) if case[0] in ("single", "multi") else 10**9)
        if len(got) != len(want):
            sys.exit(f"{case}: {len(got)} queries, LoadGen has {len(want)}")
        for i, (a, b) in enumerate(zip(got, want)):
            if a != b:
                sys.exit(f"{case}: query {i} is {a}, LoadGen's {b}")
        print(f"{case[0]:8} {case[1]:6} samples, {len(got):5} queries: as LoadGen's")


main()
