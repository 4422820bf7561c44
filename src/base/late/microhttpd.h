/* libmicrohttpd, after hn_late_need(HN_LATE_LIBRARY_MICROHTTPD). */
#ifndef HN_BASE_LATE_MICROHTTPD_H
#define HN_BASE_LATE_MICROHTTPD_H

#include "base/symbols.h"
#include "late_names.h"

#include <microhttpd.h>

#ifdef HN_LATE_MICROHTTPD
#define HN_MICROHTTPD_SYMBOLS(X)                                                                             \
  X(MHD_add_response_header)                                                                                 \
  X(MHD_create_response_from_buffer)                                                                         \
  X(MHD_create_response_from_callback)                                                                       \
  X(MHD_destroy_response)                                                                                    \
  X(MHD_get_connection_info)                                                                                 \
  X(MHD_get_connection_values)                                                                               \
  X(MHD_lookup_connection_value)                                                                             \
  X(MHD_queue_response)                                                                                      \
  X(MHD_quiesce_daemon)                                                                                      \
  X(MHD_set_connection_option)                                                                               \
  X(MHD_start_daemon)                                                                                        \
  X(MHD_stop_daemon)

typedef struct hn_late_microhttpd {
  HN_MICROHTTPD_SYMBOLS(HN_DL_FIELD)
} hn_late_microhttpd;
extern hn_late_microhttpd hn_microhttpd;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define MHD_add_response_header hn_microhttpd.MHD_add_response_header
#define MHD_create_response_from_buffer hn_microhttpd.MHD_create_response_from_buffer
#define MHD_create_response_from_callback hn_microhttpd.MHD_create_response_from_callback
#define MHD_destroy_response hn_microhttpd.MHD_destroy_response
#define MHD_get_connection_info hn_microhttpd.MHD_get_connection_info
#define MHD_get_connection_values hn_microhttpd.MHD_get_connection_values
#define MHD_lookup_connection_value hn_microhttpd.MHD_lookup_connection_value
#define MHD_queue_response hn_microhttpd.MHD_queue_response
#define MHD_quiesce_daemon hn_microhttpd.MHD_quiesce_daemon
#define MHD_set_connection_option hn_microhttpd.MHD_set_connection_option
#define MHD_start_daemon hn_microhttpd.MHD_start_daemon
#define MHD_stop_daemon hn_microhttpd.MHD_stop_daemon
#endif
#endif

#endif
