// All of AutoGraph's public API.
#pragma once

#include "autograph/attested_kernels.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/graph.h"
#include "autograph/model_io.h"
#include "autograph/op_def.h"
#include "autograph/tensor.h"
#include "autograph/tensor_io.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "autograph/zoo.h"
