/* A quadrangle of a picture as a rectangle of pixels. */
#ifndef HN_API_CHAIN_QUAD_H
#define HN_API_CHAIN_QUAD_H

#include <stdbool.h>
#include <stdint.h>

/* The perspective map that takes the unit square to a quadrangle: x = (m[0] u + m[1] v + m[2]) / w, y = (m[3]
 * u
 * + m[4] v + m[5]) / w, w = m[6] u + m[7] v + 1; (0, 0) to corner 0, (1, 0) to 1, (1, 1) to 2, (0, 1) to 3.
 * The formula is Heckbert's (Fundamentals of Texture Mapping and Image Warping, 1989). */
void hn_quad_map(const double x[4], const double y[4], double m[8]);
/* height x width RGB pixels of what the quadrangle shows of a picture: each the value at its own middle,
 * outside of the picture that of its edge; bilinear, or (smooth) by cubic convolution, which keeps thin lines
 * of what will be enlarged. */
void hn_quad_sample(const uint8_t *rgb, int64_t height, int64_t width, const double x[4], const double y[4],
                    bool smooth, int64_t to_height, int64_t to_width, uint8_t *to);

#endif
