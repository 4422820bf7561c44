/* Everything of hone's public interface. */
#ifndef HONE_HONE_H
#define HONE_HONE_H

#include <hone/candidates.h>
#include <hone/chain.h>
#include <hone/compare.h>
#include <hone/cuda.h>
#include <hone/data.h>
#include <hone/dataset.h>
#include <hone/device_memory.h>
#include <hone/dlpack.h>
#include <hone/eval.h>
#include <hone/facts.h>
#include <hone/file.h>
#include <hone/history.h>
#include <hone/improve.h>
#include <hone/import.h>
#include <hone/insight.h>
#include <hone/layers.h>
#include <hone/load.h>
#include <hone/measure.h>
#include <hone/memory.h>
#include <hone/mixed.h>
#include <hone/model.h>
#include <hone/pictures.h>
#include <hone/pipeline.h>
#include <hone/plugin.h>
#include <hone/plugins.h>
#include <hone/post.h>
#include <hone/quantize.h>
#include <hone/serve.h>
#include <hone/session.h>
#include <hone/shapes.h>
#include <hone/status.h>
#include <hone/system.h>
#include <hone/tensor.h>
#include <hone/text.h>
#include <hone/version.h>

#endif
