#include "mutate.h"

#include "base/arena.h"
#include "base/rng.h"
#include "base/vec.h"

#include <string.h>

enum { DEPTH = 24, MOST_FIELDS = 20000 };

typedef struct field field;
typedef HN_VEC(field *) fields;

struct field {
  const hn_pb_field_desc *desc; /* NULL: not in the schema */
  uint32_t number, wire;
  uint64_t value;
  const uint8_t *ptr;
  size_t len;
  bool message; /* children instead of bytes */
  fields children;
};

typedef struct tree {
  hn_arena arena;
  hn_rng rng;
  field root;
  uint8_t root_id;
  HN_VEC(field *) all;     /* every field but the root, for choosing */
  HN_VEC(field *) parents; /* of each in `all` */
} tree;

static size_t below(tree *t, size_t n) { return n ? (size_t)hn_rng_below(&t->rng, n) : 0; }

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *v) {
  *v = 0;
  for (int shift = 0; shift < 70 && *p < end; shift += 7) {
    uint8_t b = *(*p)++;
    *v |= shift < 64 ? (uint64_t)(b & 0x7f) << shift : 0;
    if (!(b & 0x80)) return true;
  }
  return false;
}

static bool parse(tree *t, field *into, uint8_t id, const uint8_t *p, const uint8_t *end, int depth) {
  while (p < end) {
    uint64_t tag;
    if (t->all.len >= MOST_FIELDS || !varint(&p, end, &tag)) return false;
    field *f = HN_NEW(&t->arena, field);
    if (!f) return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = tag & 7;
    f->desc = f->number < 32 ? hn_pb_messages[id].field[f->number] : NULL;
    if (f->wire == 0) {
      if (!varint(&p, end, &f->value)) return false;
    } else {
      uint64_t n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
      if ((f->wire == 2 && !varint(&p, end, &n)) || (f->wire != 2 && !n) || n > (uint64_t)(end - p))
        return false;
      f->ptr = p;
      f->len = (size_t)n;
      p += n;
    }
    if (!hn_vec_push(&into->children, f) || !hn_vec_push(&t->all, f) || !hn_vec_push(&t->parents, into))
      return false;
    if (f->wire == 2 && f->desc && f->desc->holds && depth < DEPTH) {
      f->message = true;
      if (!parse(t, f, f->desc->holds, f->ptr, f->ptr + f->len, depth + 1)) return false;
    }
  }
  return true;
}

/* ------------------------------------------------------------------ writing */

/* From the end to the beginning: a message's length is known when its fields lie there, so that each is
 * written once however deep it lies. Subtrees are shared (transplant) and may stand for more than any memory:
 * `ptr` gets no lower than `begin`. */
typedef struct out {
  uint8_t *begin, *ptr;
  bool full;
} out;

static void put(out *o, const void *p, size_t n) {
  if (o->full || n > (size_t)(o->ptr - o->begin)) {
    o->full = true;
    return;
  }
  o->ptr -= n;
  if (n) memcpy(o->ptr, p, n);
}

static void put_varint(out *o, uint64_t v) {
  uint8_t b[10];
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) b[n++] = (uint8_t)(v | 0x80);
  b[n++] = (uint8_t)v;
  put(o, b, n);
}

static void write_fields(out *o, const field *f) {
  for (size_t i = f->children.len; i-- && !o->full;) {
    const field *c = f->children.ptr[i];
    const uint8_t *end = o->ptr;
    if (c->wire == 0)
      put_varint(o, c->value);
    else if (c->message)
      write_fields(o, c);
    else
      put(o, c->ptr, c->len);
    if (c->wire == 2) put_varint(o, (uint64_t)(end - o->ptr));
    put_varint(o, (uint64_t)c->number << 3 | c->wire);
  }
}

/* The file in data, of at most max bytes; 0: it does not fit. */
static size_t write_file(tree *t, uint8_t *data, size_t max) {
  uint8_t *space = hn_arena_alloc(&t->arena, max + 1);
  out o = {.begin = space, .ptr = space ? space + max : NULL, .full = !space};
  write_fields(&o, &t->root);
  if (o.full) return 0;
  size_t n = (size_t)(space + max - o.ptr);
  memcpy(data, o.ptr, n);
  return n;
}

/* ------------------------------------------------------------------ changes */

/* The message id whose fields f holds. */
static uint8_t id_of(const tree *t, const field *f) { return f == &t->root ? t->root_id : f->desc->holds; }

static uint64_t odd_number(tree *t) {
  static const uint64_t odd[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 8,
                                 16,
                                 127,
                                 128,
                                 255,
                                 256,
                                 65535,
                                 65536,
                                 0x7fffffff,
                                 0x80000000,
                                 0xffffffff,
                                 0x7fffffffffffffff,
                                 0x8000000000000000,
                                 0xffffffffffffffff,
                                 0xfffffffffffffffe};
  size_t k = below(t, sizeof odd / sizeof *odd + 8);
  return k < sizeof odd / sizeof *odd ? odd[k] : below(t, 40);
}

/* Takes the bytes of another text of the file: this rewires edges, types and names. */
static void borrow_text(tree *t, field *f) {
  for (int tries = 0; tries < 20; tries++) {
    field *g = t->all.ptr[below(t, t->all.len)];
    if (g == f || g->wire != 2 || g->message || !g->desc || g->desc->form != HN_PB_STRING) continue;
    f->ptr = g->ptr;
    f->len = g->len;
    return;
  }
}

static void change_bytes(tree *t, field *f) {
  size_t cap = f->len + 16;
  uint8_t *p = hn_arena_alloc(&t->arena, cap);
  if (!p) return;
  if (f->len) memcpy(p, f->ptr, f->len);
  switch (below(t, 4)) {
  case 0: f->len = below(t, f->len + 1); break;
  case 1: f->len += below(t, 16); break;
  default: f->len = LLVMFuzzerMutate(p, f->len, cap);
  }
  f->ptr = p;
}

static void change_value(tree *t, field *f) {
  if (f->wire == 0)
    f->value = below(t, 4) ? odd_number(t) : f->value + (below(t, 2) ? 1 : (uint64_t)-1);
  else if (f->desc && f->desc->form == HN_PB_STRING && below(t, 4))
    borrow_text(t, f);
  else if (!f->message)
    change_bytes(t, f);
}

static bool insert(field *parent, size_t at, field *f) {
  if (!hn_vec_push(&parent->children, f)) return false;
  memmove(parent->children.ptr + at + 1, parent->children.ptr + at,
          (parent->children.len - 1 - at) * sizeof f);
  parent->children.ptr[at] = f;
  return true;
}

/* A field that the schema knows in this place, with a value of the right form. */
static void add_new(tree *t, field *parent) {
  const hn_pb_message_desc *m = &hn_pb_messages[id_of(t, parent)];
  const hn_pb_field_desc *desc = m->field[below(t, 32)];
  field *f = desc ? HN_NEW(&t->arena, field) : NULL;
  if (!f) return;
  static const uint8_t wires[] = {
      [HN_PB_INT] = 0,    [HN_PB_FLOAT] = 5, [HN_PB_INTS] = 0, [HN_PB_FLOATS] = 5, [HN_PB_DOUBLES] = 1,
      [HN_PB_STRING] = 2, [HN_PB_BYTES] = 2, [HN_PB_ONE] = 2,  [HN_PB_MANY] = 2};
  f->desc = desc;
  f->number = desc->number;
  f->wire = wires[desc->form];
  f->value = odd_number(t);
  f->message = desc->holds != HN_ONNX_NONE;
  f->ptr = hn_arena_alloc(&t->arena, 8);
  f->len = f->wire == 1 ? 8 : f->wire == 5 ? 4 : 0;
  if (!f->ptr) return;
  if (desc->form == HN_PB_STRING) borrow_text(t, f);
  insert(parent, below(t, parent->children.len + 1), f);
}

/* A second reference to `f` (its subtree is shared: writing does not mind) in a parent that may hold it. */
static void transplant(tree *t, field *f) {
  for (int tries = 0; tries < 30; tries++) {
    field *g = t->all.ptr[below(t, t->all.len)];
    if (!g->message || g == f || hn_pb_messages[id_of(t, g)].field[f->number & 31] != f->desc) continue;
    /* Only downwards would make a ring: what f holds is never chosen as the place for f. */
    const field *stack[DEPTH * 4];
    size_t n = 0;
    bool inside = false;
    stack[n++] = f;
    while (n && !inside) {
      const field *s = stack[--n];
      inside = s == g;
      for (size_t i = 0; i < s->children.len && !inside; i++) {
        if (!s->children.ptr[i]->message) continue;
        inside = n == DEPTH * 4; /* too many to look at */
        if (!inside) stack[n++] = s->children.ptr[i];
      }
    }
    if (inside) continue;
    insert(g, below(t, g->children.len + 1), f);
    return;
  }
}

static void change(tree *t) {
  if (!t->all.len) {
    add_new(t, &t->root);
    return;
  }
  size_t k = below(t, t->all.len);
  field *f = t->all.ptr[k], *parent = t->parents.ptr[k];
  size_t at = 0;
  while (at < parent->children.len && parent->children.ptr[at] != f) at++;
  switch (below(t, 10)) {
  case 0: /* drop */
    if (at == parent->children.len) return;
    memmove(parent->children.ptr + at, parent->children.ptr + at + 1,
            (parent->children.len - at - 1) * sizeof f);
    parent->children.len--;
    break;
  case 1: insert(parent, at < parent->children.len ? at : 0, f); break; /* twice */
  case 2: add_new(t, f->message ? f : parent); break;
  case 3:
    if (f->desc) transplant(t, f);
    break;
  case 4: { /* change places */
    size_t other = below(t, parent->children.len);
    if (at == parent->children.len) return;
    parent->children.ptr[at] = parent->children.ptr[other];
    parent->children.ptr[other] = f;
    break;
  }
  default: change_value(t, f);
  }
}

static void done(tree *t) {
  for (size_t i = 0; i < t->all.len; i++) hn_vec_free(&t->all.ptr[i]->children);
  hn_vec_free(&t->root.children);
  hn_vec_free(&t->all);
  hn_vec_free(&t->parents);
  hn_arena_free(&t->arena);
}

size_t mutate_file(uint8_t *data, size_t size, size_t max, unsigned seed, hn_pb_message_id root) {
  tree t = {.rng = {seed}, .root_id = (uint8_t)root};
  uint8_t *copy = hn_arena_alloc(&t.arena, size + 1);
  size_t result = 0;
  if (copy && size) memcpy(copy, data, size);
  if (copy && below(&t, 20) && parse(&t, &t.root, (uint8_t)root, copy, copy + size, 0)) {
    for (size_t n = 1 + below(&t, 4); n; n--) change(&t);
    result = write_file(&t, data, max);
  }
  done(&t);
  return result ? result : LLVMFuzzerMutate(data, size, max);
}

size_t cross_files(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *result,
                   size_t max, unsigned seed, hn_pb_message_id root) {
  tree to = {.rng = {seed}, .root_id = (uint8_t)root}, from = {.rng = {seed + 1}, .root_id = (uint8_t)root};
  size_t n = 0;
  if (parse(&to, &to.root, (uint8_t)root, a, a + a_size, 0) &&
      parse(&from, &from.root, (uint8_t)root, b, b + b_size, 0) && from.all.len && to.all.len)
    for (int tries = 0; tries < 30; tries++) {
      field *f = from.all.ptr[below(&to, from.all.len)], *g = to.all.ptr[below(&to, to.all.len)];
      if (!g->message || !f->desc || hn_pb_messages[id_of(&to, g)].field[f->number & 31] != f->desc) continue;
      insert(g, below(&to, g->children.len + 1), f);
      n = write_file(&to, result, max);
      break;
    }
  done(&to);
  done(&from);
  return n;
}
