/* `spread` of the tiers without permutations over whole vectors. */
static void spread(float *to, const float *from, size_t distance, size_t n, size_t limit) {
  (void)limit;
  size_t i = 0;
  for (; i < n; i++) to[i] = from[i * distance];
  for (; i % VEC_W; i++) to[i] = 0;
}
