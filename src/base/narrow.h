/* Numbers of 8 bits and fewer that are stored, and computed with as wider ones: 8, 6 and 4-bit floats, 4 and
 * 2-bit integers. In memory an element has a byte; files hold them packed. */
#ifndef HN_BASE_NARROW_H
#define HN_BASE_NARROW_H

#include <hone/tensor.h>

/* Bits of an element in a file; 0: no such type. */
int hn_narrow_bits(hone_dtype dtype);
bool hn_narrow_is_float(hone_dtype dtype);

/* The number that a byte in memory is; every one is exact in f32. */
float hn_narrow_to_f32(hone_dtype dtype, uint8_t code);

/* How a number becomes a narrow float that does not hold it. */
typedef struct hn_narrow_rule {
  bool overflow; /* what is too large becomes infinity, or NaN where the type has none; else the largest
                    number */
  enum { HN_NARROW_UP, HN_NARROW_DOWN, HN_NARROW_NEAREST } powers; /* of F8E8M0: to which power of 2 */
} hn_narrow_rule;

/* The byte of v. Floats: round to nearest even, F8E8M0 as its rule says. Integers: truncated, and the lowest
 * bits. */
uint8_t hn_narrow_from_f64(hone_dtype dtype, double v, hn_narrow_rule rule);
uint8_t hn_narrow_from_i64(hone_dtype dtype, int64_t v);

/* n elements between a file's packed bytes (the first element in the lowest bits) and memory. */
int64_t hn_narrow_packed_bytes(hone_dtype dtype, int64_t n);
void hn_narrow_unpack(hone_dtype dtype, const uint8_t *packed, int64_t n, uint8_t *to);
void hn_narrow_pack(hone_dtype dtype, const uint8_t *from, int64_t n, uint8_t *packed);

#endif
