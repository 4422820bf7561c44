/* check_codes: networks between QuantizeLinear and DequantizeLinear on a GPU (an emulated one in CI), whose
 * steps work on codes: every tactic of their anchors gives the very codes that the CPU gives. Prints what is
 * wrong; exit 1 when something is.
 *
 * usage: check_codes [--tactic LIST]    (as check_tactics: names, or beginnings and a star; a minus leaves
 * out) */
#include "skipped.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "model/ir/text.h"
#include "model/operators.h"
#include "tactics/device_step.h"

#include <hone/hone.h>
#include <hone/session.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "ir 8\nopset 17\n"

static const struct {
  const char *name, *text;
} cases[] = {
    /* A convolution whose surroundings are not code 0, a pool, two branches that end in a sum (on either side
     * of it), a global average and a product. */
    {"unsigned codes", HEAD
     "graph g(%x: f32[2x16x9x7]) -> (%y) {\n"
     "  const %w0: i8[40x16x3x3] = rand(1, -127, 127)\n  const %b0: i32[40] = rand(2, -9000, 9000)\n"
     "  const %w1: i8[128x40x1x1] = rand(3, -127, 127)\n  const %s1: f32[128] = rand(4, 0.0005, 0.002)\n"
     "  const %w2: i8[128x128x3x3] = rand(5, -127, 127)\n  const %s2: f32[128] = rand(6, 0.0002, 0.001)\n"
     "  const %w3: i8[128x128x3x3] = rand(7, -127, 127)\n  const %w4: i8[19x128] = rand(8, -127, 127)\n"
     "  const %w5: u8[128x128x1x1] = rand(9, 1, 255)\n"
     "  %xq = QuantizeLinear(%x, f32 0.02, u8 117)\n  %x0 = DequantizeLinear(%xq, f32 0.02, u8 117)\n"
     "  %d0 = DequantizeLinear(%w0, f32 0.004, i8 0)\n  %e0 = DequantizeLinear(%b0, f32 0.00012)\n"
     "  const %wd: i8[16x1x3x3] = rand(10, -127, 127)\n"
     "  %dd = DequantizeLinear(%wd, f32 0.003, i8 0)\n"
     "  %cd = Conv(%x0, %dd) {pads=[1, 1, 1, 1], group=16}\n"
     "  %qd = QuantizeLinear(%cd, f32 0.03, u8 126)\n  %xd = DequantizeLinear(%qd, f32 0.03, u8 126)\n"
     "  %c0 = Conv(%xd, %d0, %e0) {pads=[1, 1, 1, 1]}\n  %r0 = Relu(%c0)\n"
     "  %q0 = QuantizeLinear(%r0, f32 0.03, u8 0)\n  %x1 = DequantizeLinear(%q0, f32 0.03, u8 0)\n"
     "  %p1 = MaxPool(%x1) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]}\n"
     "  %pq = QuantizeLinear(%p1, f32 0.03, u8 0)\n  %x2 = DequantizeLinear(%pq, f32 0.03, u8 0)\n"
     "  %d1 = DequantizeLinear(%w1, %s1) {axis=0}\n  %c1 = Conv(%x2, %d1)\n"
     "  %q1 = QuantizeLinear(%c1, f32 0.05, u8 131)\n  %x3 = DequantizeLinear(%q1, f32 0.05, u8 131)\n"
     "  %d2 = DequantizeLinear(%w2, %s2) {axis=0}\n  %c2 = Conv(%x3, %d2) {pads=[1, 1, 1, 1]}\n"
     "  %q2 = QuantizeLinear(%c2, f32 0.4, u8 120)\n  %x4 = DequantizeLinear(%q2, f32 0.4, u8 120)\n"
     "  %d3 = DequantizeLinear(%w3, f32 0.001)\n"
     "  %c3 = Conv(%x3, %d3) {pads=[1, 1, 1, 1]}\n"
     "  %q3 = QuantizeLinear(%c3, f32 0.3, u8 125)\n  %x5 = DequantizeLinear(%q3, f32 0.3, u8 125)\n"
     "  %a6 = Add(%x4, %x5)\n  %r6 = Relu(%a6)\n"
     "  %q6 = QuantizeLinear(%r6, f32 0.35, u8 0)\n  %x6 = DequantizeLinear(%q6, f32 0.35, u8 0)\n"
     "  %d5 = DequantizeLinear(%w5, f32 0.001, u8 128)\n  %ct = Conv(%x6, %d2) {pads=[1, 1, 1, 1]}\n"
     "  %qt = QuantizeLinear(%ct, f32 0.8, u8 120)\n  %xt = DequantizeLinear(%qt, f32 0.8, u8 120)\n"
     "  %lt = LeakyRelu(%xt) {alpha=0.1}\n  %ql = QuantizeLinear(%lt, f32 0.45, u8 30)\n"
     "  %xl = DequantizeLinear(%ql, f32 0.45, u8 30)\n  %c7 = Conv(%xl, %d5)\n"
     "  %q7 = QuantizeLinear(%c7, f32 0.5, u8 110)\n  %x7 = DequantizeLinear(%q7, f32 0.5, u8 110)\n"
     "  %a8 = Add(%x6, %x7)\n  %q8 = QuantizeLinear(%a8, f32 0.6, u8 100)\n"
     "  %x8 = DequantizeLinear(%q8, f32 0.6, u8 100)\n  %a9 = Add(%x8, %x6)\n"
     "  %q9 = QuantizeLinear(%a9, f32 0.7, u8 90)\n  %x9 = DequantizeLinear(%q9, f32 0.7, u8 90)\n"
     "  %g = GlobalAveragePool(%x9)\n  %gq = QuantizeLinear(%g, f32 0.1, u8 60)\n"
     "  %gd = DequantizeLinear(%gq, f32 0.1, u8 60)\n  %gf = Flatten(%gd)\n"
     "  %fq = QuantizeLinear(%gf, f32 0.1, u8 60)\n  %f = DequantizeLinear(%fq, f32 0.1, u8 60)\n"
     "  %d4 = DequantizeLinear(%w4, f32 0.002, i8 0)\n  %m = Gemm(%f, %d4) {transB=1}\n"
     "  %y = QuantizeLinear(%m, f32 0.2, u8 128)\n}\n"},
    /* Signed ones, rows that are not whole sixteens, and K long enough to be divided. */
    {"signed codes",
     HEAD "graph g(%x: f32[3x17x5x5], %m: f32[7x1104]) -> (%y, %z, %v, %u) {\n"
          "  const %w0: i8[33x17x3x3] = rand(1, -127, 127)\n  const %w1: i8[33x33x1x1] = rand(2, -127, 127)\n"
          "  const %w2: i8[1104x48] = rand(3, -127, 127)\n  const %s2: f32[48] = rand(4, 0.0005, 0.002)\n"
          "  const %w3: i8[33x40] = rand(5, -127, 127)\n  const %b3: i32[40] = rand(6, -20000, 20000)\n"
          "  const %w4: i8[1104x32] = rand(7, -127, 127)\n"
          "  %xq = QuantizeLinear(%x, f32 0.03, i8 5)\n  %x0 = DequantizeLinear(%xq, f32 0.03, i8 5)\n"
          "  %d0 = DequantizeLinear(%w0, f32 0.002, i8 0)\n"
          "  %c0 = Conv(%x0, %d0) {pads=[2, 1, 0, 1], dilations=[1, 2], strides=[2, 1]}\n"
          "  %q0 = QuantizeLinear(%c0, f32 0.06, i8 -3)\n  %x1 = DequantizeLinear(%q0, f32 0.06, i8 -3)\n"
          "  %d1 = DequantizeLinear(%w1, f32 0.003, i8 0)\n  %c1 = Conv(%x1, %d1)\n"
          "  %q1 = QuantizeLinear(%c1, f32 0.09, i8 7)\n  %x2 = DequantizeLinear(%q1, f32 0.09, i8 7)\n"
          "  %a2 = Add(%x1, %x2)\n  %q2 = QuantizeLinear(%a2, f32 0.1, i8 -9)\n"
          "  %x3 = DequantizeLinear(%q2, f32 0.1, i8 -9)\n  %a3 = Add(%x3, %x3)\n"
          "  %z = QuantizeLinear(%a3, f32 0.2, i8 0)\n"
          "  %s3 = Sigmoid(%x3)\n  %u = QuantizeLinear(%s3, f32 0.0039, u8 0)\n"
          "  %g = GlobalAveragePool(%x3)\n  %gq = QuantizeLinear(%g, f32 0.05, i8 1)\n"
          "  %gd = DequantizeLinear(%gq, f32 0.05, i8 1)\n  %gf = Flatten(%gd)\n"
          "  %fq = QuantizeLinear(%gf, f32 0.05, i8 1)\n  %f = DequantizeLinear(%fq, f32 0.05, i8 1)\n"
          "  %d3 = DequantizeLinear(%w3, f32 0.002, i8 0)\n  %e3 = DequantizeLinear(%b3, f32 0.0001)\n"
          "  %h = Gemm(%f, %d3, %e3)\n  %y = QuantizeLinear(%h, f32 0.2, i8 20)\n"
          "  %mq = QuantizeLinear(%m, f32 0.02, i8 -11)\n  %md = DequantizeLinear(%mq, f32 0.02, i8 -11)\n"
          "  %d2 = DequantizeLinear(%w2, %s2) {axis=1}\n  %n = MatMul(%md, %d2)\n"
          "  %nq = QuantizeLinear(%n, f32 0.8, u8 100)\n  %nd = DequantizeLinear(%nq, f32 0.8, u8 100)\n"
          "  %d4 = DequantizeLinear(%w4, f32 0.001, i8 0)\n  %k = Gemm(%md, %d4)\n"
          "  %kq = QuantizeLinear(%k, f32 0.7, i8 3)\n  %kd = DequantizeLinear(%kq, f32 0.7, i8 3)\n"
          "  %v = Concat(%nd, %kd) {axis=1}\n}\n"},
    /* A first layer, whose pixels are quantised outside, and a table behind it. */
    {"an image",
     HEAD "graph g(%x: f32[2x3x39x50]) -> (%y, %z) {\n"
          "  const %w: i8[24x3x5x5] = rand(1, -127, 127)\n  const %s: f32[24] = rand(2, 0.001, 0.003)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, u8 114)\n  %d = DequantizeLinear(%q, f32 0.02, u8 114)\n"
          "  %e = DequantizeLinear(%w, %s) {axis=0}\n"
          "  %c = Conv(%d, %e) {pads=[2, 2, 2, 2], strides=[2, 2]}\n"
          "  %r = QuantizeLinear(%c, f32 0.05, i8 7)\n  %t = DequantizeLinear(%r, f32 0.05, i8 7)\n"
          "  %p = Conv(%d, %e) {pads=[1, 1, 1, 1]}\n  %z = QuantizeLinear(%p, f32 0.06, u8 120)\n  %l = "
          "LeakyRelu(%t) {alpha=0.2}\n  %y = QuantizeLinear(%l, f32 0.03, u8 40)\n}\n"},
    /* A function behind a convolution, and a sum behind that: of other types than the product's codes, on
     * either side. */
    {"a function and a sum",
     HEAD "graph g(%x: f32[2x24x9x7]) -> (%y) {\n"
          "  const %w0: i8[40x24x3x3] = rand(1, -127, 127)\n  const %b0: i32[40] = rand(2, -9000, 9000)\n"
          "  const %w1: i8[24x40x1x1] = rand(3, -127, 127)\n  const %s1: f32[24] = rand(4, 0.0005, 0.002)\n"
          "  const %w2: i8[40x24x1x1] = rand(5, -127, 127)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, u8 114)\n  %d = DequantizeLinear(%q, f32 0.02, u8 114)\n"
          "  %e0 = DequantizeLinear(%w0, f32 0.004)\n  %g0 = DequantizeLinear(%b0, f32 0.00008)\n"
          "  %c0 = Conv(%d, %e0, %g0) {pads=[1, 1, 1, 1]}\n"
          "  %q0 = QuantizeLinear(%c0, f32 0.05, u8 120)\n  %d0 = DequantizeLinear(%q0, f32 0.05, u8 120)\n"
          "  %e1 = DequantizeLinear(%w1, %s1) {axis=0}\n  %c1 = Conv(%d0, %e1)\n"
          "  %q1 = QuantizeLinear(%c1, f32 0.06, u8 131)\n  %d1 = DequantizeLinear(%q1, f32 0.06, u8 131)\n"
          "  %l1 = LeakyRelu(%d1) {alpha=0.1}\n  %ql = QuantizeLinear(%l1, f32 0.05, u8 40)\n"
          "  %dl = DequantizeLinear(%ql, f32 0.05, u8 40)\n  %a = Add(%dl, %d)\n"
          "  %qa = QuantizeLinear(%a, f32 0.06, u8 70)\n  %da = DequantizeLinear(%qa, f32 0.06, u8 70)\n"
          "  %e2 = DequantizeLinear(%w2, f32 0.002)\n  %c2 = Conv(%da, %e2)\n"
          "  %q2 = QuantizeLinear(%c2, f32 0.1, u8 128)\n  %d2 = DequantizeLinear(%q2, f32 0.1, u8 128)\n"
          "  %t2 = Sigmoid(%d2)\n  %qt = QuantizeLinear(%t2, f32 0.008, i8 -5)\n"
          "  %dt = DequantizeLinear(%qt, f32 0.008, i8 -5)\n  %b = Add(%d0, %dt)\n"
          "  %y = QuantizeLinear(%b, f32 0.05, u8 99)\n}\n"},
    /* Products alone, as libraries have them: rows as they lie (signed, whole sixteens) and rows that are
     * not, with and without a table behind them. */
    {"pixels",
     HEAD "graph g(%x: f32[2x48x5x7]) -> (%y, %z) {\n"
          "  const %w0: i8[37x48x1x1] = rand(1, -127, 127)\n  const %b0: i32[37] = rand(2, -9000, 9000)\n"
          "  const %w1: i8[64x37x1x1] = rand(3, -127, 127)\n  const %s1: f32[64] = rand(4, 0.0005, 0.002)\n"
          "  const %w2: i8[21x64x1x1] = rand(5, -127, 127)\n  const %w3: u8[40x48x1x1] = rand(6, 1, 255)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, i8 -11)\n  %d = DequantizeLinear(%q, f32 0.02, i8 -11)\n"
          "  %e0 = DequantizeLinear(%w0, f32 0.004)\n  %g0 = DequantizeLinear(%b0, f32 0.00008)\n"
          "  %c0 = Conv(%d, %e0, %g0)\n"
          "  %q0 = QuantizeLinear(%c0, f32 0.05, u8 120)\n  %d0 = DequantizeLinear(%q0, f32 0.05, u8 120)\n"
          "  %e1 = DequantizeLinear(%w1, %s1) {axis=0}\n  %c1 = Conv(%d0, %e1)\n"
          "  %q1 = QuantizeLinear(%c1, f32 0.05, i8 7)\n  %d1 = DequantizeLinear(%q1, f32 0.05, i8 7)\n"
          "  %l = LeakyRelu(%d1) {alpha=0.2}\n  %ql = QuantizeLinear(%l, f32 0.04, i8 -20)\n"
          "  %dl = DequantizeLinear(%ql, f32 0.04, i8 -20)\n  %e2 = DequantizeLinear(%w2, f32 0.002)\n"
          "  %c2 = Conv(%dl, %e2)\n  %y = QuantizeLinear(%c2, f32 0.1, u8 128)\n"
          "  %e3 = DequantizeLinear(%w3, f32 0.003, u8 128)\n  %c3 = Conv(%d, %e3)\n"
          "  %q3 = QuantizeLinear(%c3, f32 0.05, u8 100)\n  %d3 = DequantizeLinear(%q3, f32 0.05, u8 100)\n"
          "  %t3 = Sigmoid(%d3)\n  %z = QuantizeLinear(%t3, f32 0.004, u8 1)\n}\n"},
    /* One filter a channel, of all strides, and of more columns than a word has. */
    {"depthwise",
     HEAD "graph g(%x: f32[2x21x11x10]) -> (%y, %z, %v) {\n"
          "  const %w0: i8[21x1x3x3] = rand(1, -127, 127)\n  const %w1: u8[21x1x5x5] = rand(2, 20, 200)\n"
          "  const %w2: i8[21x1x3x2] = rand(3, -127, 127)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, u8 114)\n  %d = DequantizeLinear(%q, f32 0.02, u8 114)\n"
          "  %e0 = DequantizeLinear(%w0, f32 0.004, i8 0)\n  %e1 = DequantizeLinear(%w1, f32 0.002, u8 100)\n"
          "  %e2 = DequantizeLinear(%w2, f32 0.003, i8 0)\n"
          "  %c0 = Conv(%d, %e0) {pads=[1, 1, 1, 1], strides=[2, 2], group=21}\n"
          "  %y = QuantizeLinear(%c0, f32 0.03, u8 120)\n"
          "  %c1 = Conv(%d, %e1) {pads=[2, 2, 2, 2], group=21}\n  %z = QuantizeLinear(%c1, f32 0.05, i8 3)\n"
          "  %c2 = Conv(%d, %e2) {pads=[2, 0, 0, 1], dilations=[2, 1], group=21}\n"
          "  %v = QuantizeLinear(%c2, f32 0.03, u8 127)\n}\n"},
    /* K long enough to be divided by eight, in all that tiles do. */
    {"long sums",
     HEAD "graph g(%x: f32[2x128x6x5], %m: f32[7x1104]) -> (%y, %z) {\n"
          "  const %w0: i8[128x128x3x3] = rand(1, -127, 127)\n"
          "  const %w1: i8[128x128x3x3] = rand(2, -127, 127)\n"
          "  const %w2: i8[128x128x3x3] = rand(3, -127, 127)\n"
          "  const %w3: i8[1104x48] = rand(4, -127, 127)\n  const %w4: i8[1104x32] = rand(5, -127, 127)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, u8 120)\n  %d = DequantizeLinear(%q, f32 0.02, u8 120)\n"
          "  %e0 = DequantizeLinear(%w0, f32 0.0005)\n  %c0 = Conv(%d, %e0) {pads=[1, 1, 1, 1]}\n"
          "  %q0 = QuantizeLinear(%c0, f32 0.03, u8 127)\n  %d0 = DequantizeLinear(%q0, f32 0.03, u8 127)\n"
          "  %e1 = DequantizeLinear(%w1, f32 0.0005)\n  %c1 = Conv(%d0, %e1) {pads=[1, 1, 1, 1]}\n"
          "  %q1 = QuantizeLinear(%c1, f32 0.04, u8 120)\n  %d1 = DequantizeLinear(%q1, f32 0.04, u8 120)\n"
          "  %a = Add(%d0, %d1)\n  %r = Relu(%a)\n  %q2 = QuantizeLinear(%r, f32 0.02, u8 0)\n"
          "  %d2 = DequantizeLinear(%q2, f32 0.02, u8 0)\n  %e2 = DequantizeLinear(%w2, f32 0.0005)\n"
          "  %c2 = Conv(%d2, %e2) {pads=[1, 1, 1, 1]}\n  %q3 = QuantizeLinear(%c2, f32 0.04, u8 130)\n"
          "  %d3 = DequantizeLinear(%q3, f32 0.04, u8 130)\n  %l = LeakyRelu(%d3) {alpha=0.1}\n"
          "  %y = QuantizeLinear(%l, f32 0.03, u8 20)\n"
          "  %mq = QuantizeLinear(%m, f32 0.02, i8 -11)\n  %md = DequantizeLinear(%mq, f32 0.02, i8 -11)\n"
          "  %e3 = DequantizeLinear(%w3, f32 0.001)\n  %n = MatMul(%md, %e3)\n"
          "  %nq = QuantizeLinear(%n, f32 0.05, u8 100)\n  %nd = DequantizeLinear(%nq, f32 0.05, u8 100)\n"
          "  %e4 = DequantizeLinear(%w4, f32 0.001)\n  %k = Gemm(%md, %e4)\n"
          "  %kq = QuantizeLinear(%k, f32 0.05, i8 3)\n  %kd = DequantizeLinear(%kq, f32 0.05, i8 3)\n"
          "  %z = Concat(%nd, %kd) {axis=1}\n}\n"},
    /* Matrices with a sum or a function behind them, and both: rows that are whole sixteens and that are not,
     * of signed and unsigned codes, and K long enough to be divided by eight. */
    {"sums of matrices",
     HEAD "graph g(%x: f32[2x9x1104], %m: f32[70x64]) -> (%y, %z, %v) {\n"
          "  const %w0: i8[1104x48] = rand(1, -127, 127)\n  const %s0: f32[48] = rand(2, 0.0005, 0.002)\n"
          "  const %b0: f32[48] = rand(3)\n  const %w1: i8[1104x48] = rand(4, -127, 127)\n"
          "  const %w2: i8[64x64] = rand(5, -127, 127)\n  const %w3: i8[64x37] = rand(6, -127, 127)\n"
          "  const %w4: i8[1104x32] = rand(7, -127, 127)\n"
          "  %q = QuantizeLinear(%x, f32 0.02, u8 117)\n  %d = DequantizeLinear(%q, f32 0.02, u8 117)\n"
          "  %e0 = DequantizeLinear(%w0, %s0) {axis=1}\n  %c0 = MatMul(%d, %e0)\n  %a0 = Add(%c0, %b0)\n"
          "  %q0 = QuantizeLinear(%a0, f32 0.05, u8 120)\n  %d0 = DequantizeLinear(%q0, f32 0.05, u8 120)\n"
          "  %l0 = LeakyRelu(%d0) {alpha=0.2}\n  %p0 = QuantizeLinear(%l0, f32 0.04, u8 30)\n"
          "  %f0 = DequantizeLinear(%p0, f32 0.04, u8 30)\n"
          "  %e1 = DequantizeLinear(%w1, f32 0.0008)\n  %c1 = MatMul(%d, %e1)\n"
          "  %q1 = QuantizeLinear(%c1, f32 0.05, u8 110)\n  %d1 = DequantizeLinear(%q1, f32 0.05, u8 110)\n"
          "  %t1 = Add(%d1, %f0)\n  %y = QuantizeLinear(%t1, f32 0.07, u8 100)\n"
          "  %mq = QuantizeLinear(%m, f32 0.02, i8 -11)\n  %md = DequantizeLinear(%mq, f32 0.02, i8 -11)\n"
          "  %e2 = DequantizeLinear(%w2, f32 0.004)\n  %c2 = MatMul(%md, %e2)\n"
          "  %q2 = QuantizeLinear(%c2, f32 0.04, i8 5)\n  %d2 = DequantizeLinear(%q2, f32 0.04, i8 5)\n"
          "  %t2 = Add(%md, %d2)\n  %q3 = QuantizeLinear(%t2, f32 0.05, i8 -9)\n"
          "  %d3 = DequantizeLinear(%q3, f32 0.05, i8 -9)\n  %e3 = DequantizeLinear(%w3, f32 0.003)\n"
          "  %c3 = MatMul(%d3, %e3)\n  %q4 = QuantizeLinear(%c3, f32 0.05, i8 3)\n"
          "  %d4 = DequantizeLinear(%q4, f32 0.05, i8 3)\n  %l4 = LeakyRelu(%d4) {alpha=0.1}\n"
          "  %z = QuantizeLinear(%l4, f32 0.04, i8 -30)\n"
          "  %e4 = DequantizeLinear(%w4, f32 0.001)\n  %c4 = MatMul(%d, %e4)\n"
          "  %q5 = QuantizeLinear(%c4, f32 0.06, u8 128)\n  %d5 = DequantizeLinear(%q5, f32 0.06, u8 128)\n"
          "  %s5 = Sigmoid(%d5)\n  %v = QuantizeLinear(%s5, f32 0.0039, u8 0)\n}\n"},
    /* A step and a zero point for each column. No tactic of the CPU has such: its floats are exact here, as
     * all scales are powers of two and sums below 2^24. */
    {"a step a column", HEAD
     "graph g(%x: f32[2x9x64]) -> (%y, %z) {\n"
     "  const %w0: i8[64x27] = rand(1, -127, 127)\n  const %z0: u8[27] = rand(2, 60, 200)\n"
     "  const %w1: i8[64x27] = rand(3, -127, 127)\n  const %z1: i8[27] = rand(4, -60, 60)\n"
     "  const %s: f32[27] = {0.5, 0.25, 1, 0.125, 2, 0.5, 0.25, 0.5, 1, 1, 0.25, 0.125, 0.5, 2, 1, 0.5, "
     "0.25, "
     "0.25, 1, 0.5, 2, 0.125, 0.5, 1, 0.25, 0.5, 1}\n"
     "  %q = QuantizeLinear(%x, f32 0.015625, u8 117)\n  %d = DequantizeLinear(%q, f32 0.015625, u8 117)\n"
     "  %e0 = DequantizeLinear(%w0, f32 0.0078125)\n  %c0 = MatMul(%d, %e0)\n"
     "  %y = QuantizeLinear(%c0, %s, %z0) {axis=2}\n"
     "  %e1 = DequantizeLinear(%w1, f32 0.015625)\n  %c1 = MatMul(%d, %e1)\n"
     "  %z = QuantizeLinear(%c1, %s, %z1) {axis=-1}\n}\n"},
};
enum { CASES = sizeof cases / sizeof *cases };

static int failures;
static float data[20480];

static hone_plan *plan_of(size_t k, hone_engine *engine) {
  hone_error e = {0};
  hn_model *m = NULL;
  hone_plan *plan = NULL;
  hone_plan_options o = {.level = 2};
  hone_status s = hn_model_parse(cases[k].name, cases[k].text, strlen(cases[k].text), &m, &e);
  if (!s) s = hn_model_ready(m, &e);
  if (!s) s = hone_plan_create(engine, m, &o, &plan, &e);
  if (s) printf("FAIL %s: %s %s\n", cases[k].name, e.what, e.where), failures++;
  hn_model_destroy(m);
  return plan;
}

static hone_context *run(size_t k, hone_plan *plan) {
  hone_context *c = NULL;
  hone_error e = {0};
  hone_tensor in[2];
  const hone_tensor *feed[2] = {&in[0], &in[1]};
  if (!plan) return NULL;
  for (uint32_t i = 0; i < hone_plan_inputs(plan); i++)
    in[i] = (hone_tensor){*hone_plan_input_desc(plan, i), data};
  hone_status s = hone_context_create(plan, &c, &e);
  if (!s) s = hone_context_run(c, feed, NULL, &e);
  if (!s) return c;
  printf("FAIL %s: %s %s\n", cases[k].name, e.what, e.where), failures++;
  hone_context_destroy(c);
  return NULL;
}

static bool has_step(const hone_plan *plan, const char *tactic) {
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++)
    if (hone_plan_step(plan, i, &info) && strcmp(info.tactic, tactic) == 0) return true;
  return false;
}

/* Products that stayed float because the tile in question does not take them, and no other may: they round
 * otherwise. */
static bool has_floats(const hone_plan *plan) {
  hone_step_info info;
  for (uint32_t i = 0; i < hone_plan_steps(plan); i++)
    if (hone_plan_step(plan, i, &info) && (!strncmp(info.what, "Conv", 4) || !strncmp(info.what, "Gemm", 4) ||
                                           !strncmp(info.what, "MatMul", 6)))
      return true;
  return false;
}

static void compare(size_t k, const char *tactic, const hone_plan *plan, const hone_context *got,
                    const hone_context *want) {
  for (uint32_t o = 0; o < hone_plan_outputs(plan); o++) {
    const hone_tensor *a = hone_context_output(got, o), *b = hone_context_output(want, o);
    const size_t size = hone_dtype_size(b->desc.dtype);
    const char *p = a->data, *q = b->data;
    int64_t n = hone_desc_count(&b->desc), wrong = 0, first = -1;
    for (int64_t i = 0; i < n; i++)
      if (memcmp(p + (size_t)i * size, q + (size_t)i * size, size)) wrong++, first = first < 0 ? i : first;
    if (!wrong) continue;
    printf("FAIL %s [%s]: output %u, %lld of %lld codes differ, the first is %lld\n", cases[k].name, tactic,
           o, (long long)wrong, (long long)n, (long long)first);
    failures++;
  }
}

/* Outputs of few different codes prove nothing. */
static void look_at(size_t k, const hone_context *c, uint32_t outputs) {
  for (uint32_t o = 0; c && o < outputs; o++) {
    const hone_tensor *t = hone_context_output(c, o);
    bool seen[256] = {false};
    int different = 0;
    if (hone_dtype_size(t->desc.dtype) != 1) continue;
    for (int64_t i = 0; i < hone_desc_count(&t->desc); i++) {
      bool *at = &seen[((const unsigned char *)t->data)[i]];
      different += !*at, *at = true;
    }
    if (different < 20)
      printf("FAIL %s: output %u has only %d different codes\n", cases[k].name, o, different), failures++;
  }
}

/* Tactics that the machine at hand cannot have: what needs arch 90, and libraries. */
static bool elsewhere(const hone_machine *m, const char *name) {
  return ((strstr(name, "wgmma") || strstr(name, "_turned")) && m->arch != 90) ||
         (strstr(name, "cublaslt") && !(m->libraries & HONE_LIB_CUBLASLT)) ||
         (strstr(name, "cudnn") && !(m->libraries & HONE_LIB_CUDNN));
}

/* One of the tiles, a library's product, or one for few channels. */
static bool of_codes(const char *name) {
  return !strncmp(name, "int8_", 5) || strstr(name, "_int8_") || !strncmp(name, "codes_image", 11) ||
         !strncmp(name, "codes_strip", 11);
}

/* Whether both are tiles of one kernel: one is looked at where the others are switched off. */
static bool rivals(const hone_tactic_desc *t, const hone_tactic_desc *other) {
  static const char dw[] = "codes_depthwise";
  if (strcmp(t->anchor, other->anchor) != 0) return false;
  if (!strncmp(t->name, dw, sizeof dw - 1)) return !strncmp(other->name, dw, sizeof dw - 1);
  return of_codes(t->name) && of_codes(other->name);
}

/* Whether the network has what becomes such a step. */
static bool may_have(const char *text, const char *anchor) {
  static const char *const names[][2] = {{"Conv", "Conv("}, {"MatMul", "MatMul("}, {"Gemm", "Gemm("}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strstr(anchor, names[i][0])) return strstr(text, names[i][1]) != NULL;
  return true;
}

static void check_tactic(const hn_listing *all, uint32_t at, hone_context *const *want) {
  const hone_tactic_desc *const t = all->unit[at];
  hn_str mask = {0};
  bool reached = false;
  for (uint32_t i = 0; i < all->n; i++) {
    const hone_tactic_desc *const other = all->unit[i];
    if (i != at && rivals(t, other)) hn_str_printf(&mask, "%s-%s", mask.len ? "," : "", other->name);
  }
  hone_engine *gpu = NULL;
  hone_error e = {0};
  if (hone_engine_create(&(hone_engine_options){.device = "cuda", .tactics = mask.len ? mask.ptr : ""}, &gpu,
                         &e))
    printf("FAIL: %s\n", e.what), failures++;
  for (size_t k = 0; k < CASES && gpu; k++) {
    if (!may_have(cases[k].text, t->anchor)) continue;
    hone_plan *plan = want[k] ? plan_of(k, gpu) : NULL;
    if (plan && has_step(plan, t->name) && !has_floats(plan)) {
      hone_context *got = run(k, plan);
      if (got) compare(k, t->name, plan, got, want[k]), reached = true;
      hone_context_destroy(got);
    }
    hone_plan_destroy(plan);
  }
  if (!reached) printf("FAIL %s: no network has such a step\n", t->name), failures++;
  hone_engine_destroy(gpu);
  hn_str_free(&mask);
}

int main(int argc, char **argv) {
  hone_engine *cpu = NULL;
  hone_plan *exact[CASES] = {NULL};
  hone_context *want[CASES] = {NULL};
  hone_error e = {0};
  hn_rng rng = {7};
  device_place place;
  int tactics = 0;
  const char *list = argc == 3 && !strcmp(argv[1], "--tactic") ? argv[2] : NULL;
  if (argc > 1 && !list) {
    fprintf(stderr, "usage: check_codes [--tactic LIST]\n");
    return 2;
  }
  for (size_t i = 0; i < sizeof data / sizeof *data; i++) data[i] = hn_rng_normal(&rng);
  hone_status s = device_open(&place, "cuda", &e);
  if (s == HONE_ERROR_MISSING) {
    printf("SKIP: %s\n", e.what);
    return SKIPPED;
  }
  if (s || hone_engine_create(NULL, &cpu, &e)) {
    printf("FAIL: %s\n", e.what);
    return 1;
  }
  for (size_t k = 0; k < CASES; k++) {
    want[k] = run(k, exact[k] = plan_of(k, cpu));
    look_at(k, want[k], want[k] ? hone_plan_outputs(exact[k]) : 0);
  }
  const hn_listing *all = hn_registry_take(place.backend->tactics);
  for (uint32_t i = 0; i < all->n; i++) {
    const hone_tactic_desc *const t = all->unit[i];
    /* The operators of ONNX by their definition run as what they are, not as parts of networks. */
    if ((strncmp(t->anchor, "QLinear", 7) && strcmp(t->anchor, "CodeTable")) ||
        !strcmp(t->anchor, "QLinearLayerNormalization") || /* sums in another order: check_quantised */
        !strncmp(t->name, "qlinear", 7) || !device_wants(list, t->name))
      continue;
    if (elsewhere(place.backend->machine(place.device), t->name)) continue;
    check_tactic(all, i, want);
    tactics++;
  }
  hn_listing_drop(all);
  for (size_t k = 0; k < CASES; k++) hone_context_destroy(want[k]), hone_plan_destroy(exact[k]);
  hone_engine_destroy(cpu);
  device_close(&place);
  printf("%d tactics, %d networks, %d failures\n", tactics, (int)CASES, failures);
  return failures != 0;
}
