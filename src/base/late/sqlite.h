/* SQLite, whose functions may be called after hn_late_need(HN_LATE_LIBRARY_SQLITE) succeeded. */
#ifndef HN_BASE_LATE_SQLITE_H
#define HN_BASE_LATE_SQLITE_H

#include "base/symbols.h"
#include "late_names.h"

#include <sqlite3.h>

#ifdef HN_LATE_SQLITE
#define HN_SQLITE_SYMBOLS(X)                                                                                 \
  X(sqlite3_backup_finish)                                                                                   \
  X(sqlite3_backup_init)                                                                                     \
  X(sqlite3_backup_step)                                                                                     \
  X(sqlite3_bind_double)                                                                                     \
  X(sqlite3_bind_int64)                                                                                      \
  X(sqlite3_bind_text)                                                                                       \
  X(sqlite3_bind_text64)                                                                                     \
  X(sqlite3_busy_timeout)                                                                                    \
  X(sqlite3_changes)                                                                                         \
  X(sqlite3_close)                                                                                           \
  X(sqlite3_column_bytes)                                                                                    \
  X(sqlite3_column_double)                                                                                   \
  X(sqlite3_column_int64)                                                                                    \
  X(sqlite3_column_text)                                                                                     \
  X(sqlite3_column_type)                                                                                     \
  X(sqlite3_db_config)                                                                                       \
  X(sqlite3_db_readonly)                                                                                     \
  X(sqlite3_errcode)                                                                                         \
  X(sqlite3_errmsg)                                                                                          \
  X(sqlite3_errstr)                                                                                          \
  X(sqlite3_exec)                                                                                            \
  X(sqlite3_finalize)                                                                                        \
  X(sqlite3_last_insert_rowid)                                                                               \
  X(sqlite3_limit)                                                                                           \
  X(sqlite3_open_v2)                                                                                         \
  X(sqlite3_prepare_v2)                                                                                      \
  X(sqlite3_reset)                                                                                           \
  X(sqlite3_set_authorizer)                                                                                  \
  X(sqlite3_snprintf)                                                                                        \
  X(sqlite3_step)                                                                                            \
  X(sqlite3_stricmp)                                                                                         \
  X(sqlite3_system_errno)

typedef struct hn_late_sqlite {
  HN_SQLITE_SYMBOLS(HN_DL_FIELD)
} hn_late_sqlite;
extern hn_late_sqlite hn_sqlite;

#ifndef HN_LATE_TABLES /* where the table is made, names are names */
#define sqlite3_backup_finish hn_sqlite.sqlite3_backup_finish
#define sqlite3_backup_init hn_sqlite.sqlite3_backup_init
#define sqlite3_backup_step hn_sqlite.sqlite3_backup_step
#define sqlite3_bind_double hn_sqlite.sqlite3_bind_double
#define sqlite3_bind_int64 hn_sqlite.sqlite3_bind_int64
#define sqlite3_bind_text hn_sqlite.sqlite3_bind_text
#define sqlite3_bind_text64 hn_sqlite.sqlite3_bind_text64
#define sqlite3_busy_timeout hn_sqlite.sqlite3_busy_timeout
#define sqlite3_changes hn_sqlite.sqlite3_changes
#define sqlite3_close hn_sqlite.sqlite3_close
#define sqlite3_column_bytes hn_sqlite.sqlite3_column_bytes
#define sqlite3_column_double hn_sqlite.sqlite3_column_double
#define sqlite3_column_int64 hn_sqlite.sqlite3_column_int64
#define sqlite3_column_text hn_sqlite.sqlite3_column_text
#define sqlite3_column_type hn_sqlite.sqlite3_column_type
#define sqlite3_db_config hn_sqlite.sqlite3_db_config
#define sqlite3_db_readonly hn_sqlite.sqlite3_db_readonly
#define sqlite3_errcode hn_sqlite.sqlite3_errcode
#define sqlite3_errmsg hn_sqlite.sqlite3_errmsg
#define sqlite3_errstr hn_sqlite.sqlite3_errstr
#define sqlite3_exec hn_sqlite.sqlite3_exec
#define sqlite3_finalize hn_sqlite.sqlite3_finalize
#define sqlite3_last_insert_rowid hn_sqlite.sqlite3_last_insert_rowid
#define sqlite3_limit hn_sqlite.sqlite3_limit
#define sqlite3_open_v2 hn_sqlite.sqlite3_open_v2
#define sqlite3_prepare_v2 hn_sqlite.sqlite3_prepare_v2
#define sqlite3_reset hn_sqlite.sqlite3_reset
#define sqlite3_set_authorizer hn_sqlite.sqlite3_set_authorizer
#define sqlite3_snprintf hn_sqlite.sqlite3_snprintf
#define sqlite3_step hn_sqlite.sqlite3_step
#define sqlite3_stricmp hn_sqlite.sqlite3_stricmp
#define sqlite3_system_errno hn_sqlite.sqlite3_system_errno
#endif
#endif

#endif
