// The builders behind the zoo: one function a model, one file a family. Each returns a finished graph for that batch.
#pragma once

#include <cstdint>

#include "autograph/graph.h"

namespace autograph {

Graph build_inception_v3(int64_t batch);
Graph build_resnet50(int64_t batch);
Graph build_resnet50_taso(int64_t batch);
Graph build_resnext50(int64_t batch);
Graph build_resnext50_taso(int64_t batch);
Graph build_nasnet_a(int64_t batch);
Graph build_nasnet_cell(int64_t batch);
Graph build_nasnet_mobile(int64_t batch);
Graph build_nasnet_large(int64_t batch);
Graph build_rnntc_sru(int64_t batch);
Graph build_rnntc_sru_unshared(int64_t batch);
Graph build_nasrnn(int64_t batch);
Graph build_bert(int64_t batch);
Graph build_bert_taso_as_shipped(int64_t batch);
Graph build_bert_base(int64_t batch);
Graph build_transformer(int64_t batch);
Graph build_squeezenet(int64_t batch);
Graph build_randwire(int64_t batch);
Graph build_decoder(int64_t batch);
Graph build_decoder_step(int64_t batch);
Graph build_mixture_of_experts(int64_t batch);
Graph build_two_towers(int64_t batch);
Graph build_bilstm(int64_t batch);
Graph build_bigru(int64_t batch);
Graph build_inception_resnet(int64_t batch);
Graph build_multi_task(int64_t batch);
Graph build_mlp(int64_t batch);

}  // namespace autograph
