/* Integer types of device texts and of the argument structs that host and device share. */
#ifndef HN_CUDA_TYPES_H
#define HN_CUDA_TYPES_H

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

typedef struct hn_u4 {
  u32 v[4];
} hn_u4;

#endif
