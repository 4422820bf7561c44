/* What the threads of a warp do together, and copies behind the computation. */
#include "fibers.h"

#include <stdlib.h>
#include <string.h>

static emu_thread *thread_of(hn_emu_thread *t) { return (emu_thread *)t; }

static void sync_block(hn_emu_thread *head, int line) { emu_meet(thread_of(head), EMU_BARRIER, line); }

static void sync_warp(hn_emu_thread *head) { emu_meet(thread_of(head), EMU_SYNC_WARP, 0); }

static unsigned shuffle(hn_emu_thread *head, unsigned x, unsigned lane) {
  emu_thread *t = thread_of(head);
  emu_slot_of(t, head->lane)->in[0] = x;
  emu_meet(t, EMU_SHUFFLE, 0);
  const unsigned r = emu_slot_of(t, lane)->in[0];
  t->parity++;
  return r;
}

static unsigned ballot(hn_emu_thread *head, int predicate) {
  emu_thread *t = thread_of(head);
  emu_slot_of(t, head->lane)->in[0] = predicate != 0;
  emu_meet(t, EMU_BALLOT, 0);
  unsigned r = 0;
  for (unsigned i = 0; i < EMU_WARP; i++) r |= emu_slot_of(t, i)->in[0] << i;
  t->parity++;
  return r;
}

/* Lane 8 j + i brings row i of matrix j; lane l takes elements 2 (l % 4) and the next of row l / 4, or of
 * column l / 4 when transposed. */
static void ldmatrix(hn_emu_thread *head, unsigned *r, const void *row, int matrices, int transposed) {
  emu_thread *t = thread_of(head);
  emu_slot *mine = emu_slot_of(t, head->lane);
  mine->address = row;
  if ((int)head->lane < 8 * matrices) {
    if ((uintptr_t)row % 16) emu_fault(t, "ldmatrix: the row's address is not 16-byte aligned");
    if (!emu_is_shared(t, row, 16)) emu_fault(t, "ldmatrix: the row is not in shared memory");
  }
  if (emu_meet(t, EMU_LDMATRIX, matrices * 2 + transposed))
    for (int j = 0; j < matrices; j++) {
      uint16_t m[8][8];
      for (unsigned i = 0; i < 8; i++) memcpy(m[i], emu_slot_of(t, 8 * (unsigned)j + i)->address, 16);
      for (unsigned l = 0; l < EMU_WARP; l++) {
        const unsigned a = l / 4, b = l % 4 * 2;
        emu_slot_of(t, l)->out[j] =
            transposed ? m[b][a] | (unsigned)m[b + 1][a] << 16 : m[a][b] | (unsigned)m[a][b + 1] << 16;
      }
    }
  memcpy(r, mine->out, (size_t)matrices * sizeof *r);
  t->parity++;
}

static float from_bits(unsigned u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static float half_value(unsigned h) {
  const unsigned sign = (h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
  if (e == 31) return from_bits(sign | 0x7f800000u | m << 13);
  if (e) return from_bits(sign | (e + 112) << 23 | m << 13);
  return from_bits(sign) + (sign ? -1.0f : 1.0f) * (float)m * 0x1p-24f;
}

static const float *half_table(void) {
  static float *table;
  if (!table) {
    float *p = malloc(65536 * sizeof *p);
    if (!p) abort();
    for (unsigned h = 0; h < 65536; h++) p[h] = half_value(h);
    table = p;
  }
  return table;
}

/* Element (row, column) of fragments as the PTX manual lays them out: for 16-bit types register i of lane l
 * of A has rows l / 4 + 8 (i % 2), columns 2 (l % 4) + 8 (i / 2) and the next; of B rows (k) 2 (l % 4) + 8 i
 * and the next, column l / 4. For tf32: A (l / 4 + 8 (i % 2), l % 4 + 4 (i / 2)), B (l % 4 + 4 i, l / 4).
 * C: register i has row l / 4 + 8 (i / 2), column 2 (l % 4) + i % 2. */
static void multiply(const emu_thread *t, hn_emu_mma kind) {
  const float *half = half_table();
  float a[16][16], b[16][8];
  const unsigned depth = kind == HN_EMU_TF32 ? 8 : 16;
  for (unsigned l = 0; l < EMU_WARP; l++) {
    const unsigned *in = emu_slot_of(t, l)->in, r = l / 4, c = l % 4;
    if (kind == HN_EMU_TF32) { /* the low 13 bits are not looked at */
      for (unsigned i = 0; i < 4; i++) a[r + 8 * (i % 2)][c + 4 * (i / 2)] = from_bits(in[i] & 0xffffe000u);
      for (unsigned i = 0; i < 2; i++) b[c + 4 * i][r] = from_bits(in[4 + i] & 0xffffe000u);
      continue;
    }
    for (unsigned i = 0; i < 6; i++) {
      const unsigned low = in[i] & 0xffff, high = in[i] >> 16;
      const float x = kind == HN_EMU_F16 ? half[low] : from_bits(low << 16),
                  y = kind == HN_EMU_F16 ? half[high] : from_bits(high << 16);
      if (i < 4)
        a[r + 8 * (i % 2)][2 * c + 8 * (i / 2)] = x, a[r + 8 * (i % 2)][2 * c + 8 * (i / 2) + 1] = y;
      else
        b[2 * c + 8 * (i - 4)][r] = x, b[2 * c + 8 * (i - 4) + 1][r] = y;
    }
  }
  for (unsigned r = 0; r < 16; r++) {
    float sum[8] = {0};
    for (unsigned k = 0; k < depth; k++)
      for (unsigned c = 0; c < 8; c++) sum[c] += a[r][k] * b[k][c];
    for (unsigned c = 0; c < 8; c++) {
      emu_slot *s = emu_slot_of(t, r % 8 * 4 + c / 2);
      memcpy(&s->out[r / 8 * 2 + c % 2], &sum[c], 4);
    }
  }
}

/* The same with 32 of K: four codes where 16-bit types have two elements. */
static void multiply_codes(const emu_thread *t, hn_emu_mma kind) {
  int a[16][32], b[32][8];
  for (unsigned l = 0; l < EMU_WARP; l++) {
    const unsigned *in = emu_slot_of(t, l)->in, r = l / 4, c = l % 4;
    for (unsigned i = 0; i < 4; i++)
      for (unsigned k = 0; k < 4; k++) {
        const unsigned char code = (unsigned char)(in[i] >> 8 * k);
        a[r + 8 * (i % 2)][4 * c + 16 * (i / 2) + k] = kind == HN_EMU_I8 ? (signed char)code : code;
        if (i < 2) b[4 * c + 16 * i + k][r] = (signed char)(in[4 + i] >> 8 * k);
      }
  }
  for (unsigned r = 0; r < 16; r++)
    for (unsigned c = 0; c < 8; c++) {
      int sum = 0;
      for (unsigned k = 0; k < 32; k++) sum += a[r][k] * b[k][c];
      emu_slot_of(t, r % 8 * 4 + c / 2)->out[r / 8 * 2 + c % 2] = (unsigned)sum;
    }
}

static void mma(hn_emu_thread *head, hn_emu_mma kind, void *d, const unsigned *a, const unsigned *b) {
  emu_thread *t = thread_of(head);
  emu_slot *mine = emu_slot_of(t, head->lane);
  memcpy(mine->in, a, 4 * sizeof *a);
  memcpy(mine->in + 4, b, 2 * sizeof *b);
  const int codes = kind == HN_EMU_U8 || kind == HN_EMU_I8;
  if (emu_meet(t, EMU_MMA, (int)kind)) {
    if (codes)
      multiply_codes(t, kind);
    else
      multiply(t, kind);
  }
  for (int i = 0; i < 4; i++) {
    if (codes)
      ((unsigned *)d)[i] += mine->out[i]; /* wraps */
    else
      ((float *)d)[i] += from_bits(mine->out[i]);
  }
  t->parity++;
}

/* The copy is done as late as it may be, at the wait, and its target is unreadable from now on, as early as
 * the hardware may write it: both what reads too early and what overwrites too early shows. */
static void cp_async(hn_emu_thread *head, void *to, const void *from, unsigned size, unsigned bytes) {
  emu_thread *t = thread_of(head);
  if ((uintptr_t)to % size) emu_fault(t, "cp.async: the target is not %u-byte aligned", size);
  if ((uintptr_t)from % size) emu_fault(t, "cp.async: the source is not %u-byte aligned", size);
  if (bytes > size) emu_fault(t, "cp.async: %u bytes of %u", bytes, size);
  if (!emu_is_shared(t, to, size)) emu_fault(t, "cp.async: the target is not in shared memory");
  memset(to, 0xff, size);
  if (t->copies == t->copy_room) {
    t->copy_room = t->copy_room ? 2 * t->copy_room : 16;
    t->copy = realloc(t->copy, t->copy_room * sizeof *t->copy);
    if (!t->copy) abort();
  }
  t->copy[t->copies++] = (emu_copy){to, from, size, bytes};
}

static void finish_groups(emu_thread *t, unsigned groups) {
  if (!groups) return;
  const unsigned n = t->group_end[groups - 1];
  for (unsigned i = 0; i < n; i++) {
    const emu_copy *c = &t->copy[i];
    if (c->bytes) memcpy(c->to, c->from, c->bytes);
    memset((char *)c->to + c->bytes, 0, c->size - c->bytes);
  }
  memmove(t->copy, t->copy + n, (t->copies - n) * sizeof *t->copy);
  t->copies -= n;
  t->groups -= groups;
  for (unsigned g = 0; g < t->groups; g++) t->group_end[g] = t->group_end[g + groups] - n;
}

static void cp_commit(hn_emu_thread *head) {
  emu_thread *t = thread_of(head);
  if (t->groups == sizeof t->group_end / sizeof *t->group_end)
    emu_fault(t, "cp.async: %u groups that nobody has waited for", t->groups);
  t->group_end[t->groups++] = t->copies;
}

static void cp_wait(hn_emu_thread *head, unsigned pending) {
  emu_thread *t = thread_of(head);
  if (t->groups > pending) finish_groups(t, t->groups - pending);
}

static void fault(hn_emu_thread *head, const char *what) { emu_fault(thread_of(head), "%s", what); }

static unsigned shared_address(hn_emu_thread *head, const void *p) {
  return emu_shared_offset(thread_of(head), p);
}

static void cluster_sync(hn_emu_thread *head) { emu_meet(thread_of(head), EMU_BARRIER, EMU_CLUSTER); }

static void *cluster_at(hn_emu_thread *head, const void *p, unsigned rank) {
  void *at = emu_cluster_at(thread_of(head), p, rank);
  if (!at)
    emu_fault(thread_of(head), "memory of block %u of the cluster: there is none, or it has returned", rank);
  return at;
}

const hn_emu_api emu_api = {.sync = sync_block,
                            .sync_warp = sync_warp,
                            .shuffle = shuffle,
                            .ballot = ballot,
                            .ldmatrix = ldmatrix,
                            .mma = mma,
                            .cp_async = cp_async,
                            .cp_commit = cp_commit,
                            .cp_wait = cp_wait,
                            .fault = fault,
                            .shared_address = shared_address,
                            .cluster_sync = cluster_sync,
                            .cluster_at = cluster_at};
