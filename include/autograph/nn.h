// Layers, losses and learning rate schedules: everything below autograph/nn/.
#pragma once

#include "autograph/nn/activations.h"
#include "autograph/nn/attention.h"
#include "autograph/nn/images.h"
#include "autograph/nn/init.h"
#include "autograph/nn/layers.h"
#include "autograph/nn/losses.h"
#include "autograph/nn/module.h"
#include "autograph/nn/recurrent.h"
#include "autograph/nn/schedules.h"
#include "autograph/nn/transformer.h"
