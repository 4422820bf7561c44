/* Loading plugins (hone/plugin.h): shared libraries with operators, tactics and patterns of other people.
 * Only who runs hone says which are loaded; a model never does. */
#ifndef HONE_PLUGINS_H
#define HONE_PLUGINS_H

#include <hone/model.h>
#include <hone/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum hone_plugin_state {
  HONE_PLUGIN_LOADED = 0,
  HONE_PLUGIN_DISABLED, /* found, and left out because the caller said so */
  HONE_PLUGIN_REFUSED   /* `error` says why; everything else works */
} hone_plugin_state;

typedef struct hone_plugin_info {
  hone_plugin_state state;
  const char *path;            /* of the shared library */
  const char *name;            /* of the file without ".so" where the plugin did not tell */
  const char *version, *about; /* "" where it did not tell */
  const hone_plugin *plugin;   /* its descriptors; NULL unless loaded */
  uint32_t n_off;              /* of its operators that the caller has switched off */
  const hone_error *error;     /* NULL unless refused */
} hone_plugin_info;

typedef struct hone_plugins_options {
  /* Folders and shared libraries, separated by ':'. Of a folder: *.so in it, in the folders in it, and in
   * their folder "build". NULL: HONE_OP_PATH, then the user's own folder (hone_plugins_folder). */
  const char *path;
  /* [n_disabled] names: of a plugin, which is not loaded, or of one of its operators ("Swish" or
   * "domain.Swish"), whose patterns and tactics are left out: models that contain it run it by its reference.
   */
  const char *const *disabled;
  uint32_t n_disabled;
  double max_seconds; /* for the trial of one plugin; 0: 10 */
} hone_plugins_options;

/* Loads what the path holds, behind what is loaded already; the same file is not loaded twice. A file is
 * refused, and kept in the list with its error, when it or a folder above it can be written by others than
 * its owner, who must be the caller or root; when it is for another processor; when it lacks a symbol, or
 * hone_plugin_entry; when it crashes, or does not come back, in the trial: a child process loads it first;
 * when a descriptor is wrong, or made for another ABI; when another plugin has its name or one of its units.
 * A folder that `path` or HONE_OP_PATH names and that holds no library is in the list, too: refused, with
 * HONE_ERROR_MISSING and what builds it; so is a project in it (NAME.json, NAME_ref.c) that was not built.
 * Errors: HONE_ERROR_MISSING (a folder or file that `path` or HONE_OP_PATH names is not there),
 * HONE_ERROR_USAGE (a name in `disabled` that nothing has), HONE_ERROR_MEMORY. Not from several threads. */
HONE_API hone_status hone_plugins_load(const hone_plugins_options *options, hone_error *error);
HONE_API uint32_t hone_plugins(void);
/* In the order in which they were found; strings live until the process ends. False behind the last. */
HONE_API bool hone_plugin_at(uint32_t i, hone_plugin_info *out);
/* Takes the units of all plugins out of the registries. Models, plans and engines that were made with them
 * stay as they are; the libraries stay in memory. */
HONE_API void hone_plugins_unload(void);
/* "$XDG_DATA_HOME/hone/ops" or "$HOME/.local/share/hone/ops" into buf; false when there is no such place. */
HONE_API bool hone_plugins_folder(char *buf, size_t size);

/* ---- patterns, for who writes plugins */

/* Where a mistake is: `in` is the pattern's own text, inputs or settings; line and column count from 1, and
 * are 0 where it has no place. */
typedef struct hone_pattern_place {
  const char *in;
  int line, column;
} hone_pattern_place;
/* Are the texts of a pattern (name, text, inputs, settings) right? */
HONE_API hone_status hone_pattern_check(const hone_pattern_desc *pattern, hone_pattern_place *place,
                                        hone_error *error);
/* The nodes that the pattern's first spelling describes, as lines of the text form ("%g = Sigmoid(%x)"), and
 * the name of what the last one makes ("y"): without marks, of several operators the first, with the
 * attributes that conditions want. `node`, one of the operator that the pattern makes (or NULL), gives those
 * that the pattern copies. input[n_inputs] describes the operator's inputs (NULL entry: left out). A name
 * that is no input and that no line makes becomes a constant of one element. Free both with hone_text_free.
 */
HONE_API hone_status hone_pattern_nodes(const hone_pattern_desc *pattern, const hone_node *node,
                                        const hone_tensor_desc *const *input, uint32_t n_inputs, char **nodes,
                                        char **result, hone_error *error);
/* The other way: the operator, with its attributes, that the pattern makes of nodes of this model, whose
 * shapes are known (hone_model_bind), as one line of the text form. Free it with hone_text_free.
 * HONE_ERROR_UNSUPPORTED: it does not match there; the error says why. */
HONE_API hone_status hone_pattern_operator(const hone_pattern_desc *pattern, hone_model *model, char **line,
                                           hone_error *error);

#ifdef __cplusplus
}
#endif
#endif
