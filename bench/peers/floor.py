"""The time below which no engine can go on this machine: arithmetic at the measured peak, bytes at the measured bandwidth."""
from engines import json_of


class Roofs:
    """What `hone device` measures, by thread count: GFLOP/s and GB/s."""

    def __init__(self, hone, threads):
        self.of, self.machine, self.others = {}, "", {}
        for t in threads:
            d = json_of([hone, "device", "--again", "-t", str(t), "--json"])
            self.machine = d["name"]
            self.others[t] = 0 if d["quiet"] else d["others_share"]
            self.of[t] = {r["name"]: r["value"] for r in d["roofs"] if r["value"]}

    def peak(self, threads, precision):
        """The fastest unit for it: bf16 may fall back on f32, and f32 may be six products of its three bf16 parts."""
        roofs = self.of[threads]
        bf16 = roofs.get("bf16", 0)
        return max(roofs["f32"], bf16 / 6 if precision == "f32" else bf16)

    def lines(self):
        for t, roofs in self.of.items():
            yield "%d thread%s: " % (t, "s" * (t > 1)) + ", ".join("%s %.4g" % r for r in roofs.items())
            if self.others[t]:
                yield "too low, others took %.0f %% of the processors" % (100 * self.others[t])


def floor_ms(facts, roofs, threads, precision):
    """(milliseconds, what binds). Every weight is read once (of embedding tables only the rows), every FLOP counted as the model
    writes it: Winograd may go below that, and then says so with more than 100 %."""
    width = 4 if precision == "f32" else 2
    weights = sum(n["params"] * width for n in facts["nodes"] if n["type"] != "Gather")
    flops = facts["totals"]["flops"] / roofs.peak(threads, precision) / 1e6
    data = weights / roofs.of[threads]["DRAM"] / 1e6
    return max((flops, "FLOP"), (data, "bytes"))
