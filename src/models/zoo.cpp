// The table of built-in models.
#include "autograph/zoo.h"

#include <array>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "models/models.h"
#include "models/weights.h"

namespace autograph {
namespace {

struct Row {
  std::string_view name;
  std::string_view description;
  Graph (*build)(int64_t batch);
  bool is_variant = false;
};

constexpr std::array kRows = {
    Row{"inception_v3",
        "Inception-v3 as in TASO and IOS: 3x299x299, relu after every convolution, no batch norm, no head",
        build_inception_v3},
    Row{"resnet50", "ResNet-50, torchvision: stem, batch norm as nodes, linear head", build_resnet50},
    Row{"resnext50", "ResNeXt-50 32x4d, torchvision: stem, batch norm as nodes, linear head", build_resnext50},
    Row{"nasnet_a", "NasNet-A of TASO's example: 383 ops, 30 GFLOP, no batch norm, no head", build_nasnet_a},
    Row{"nasnet_mobile", "NASNet-A (4@1056): the published Mobile network, 224x224", build_nasnet_mobile},
    Row{"nasnet_large", "NASNet-A (6@4032): the published Large network, 331x331; the other reading of NasNet-A",
        build_nasnet_large},
    Row{"rnntc_sru", "RNNTC-SRU of MetaFlow: 20 steps of 1024, weights shared by the steps", build_rnntc_sru},
    Row{"bert",
        "BERT of TASO's example with softmax, transposed keys and the output projection applied to the attention: "
        "8 layers, one unit of batch = 16 sequences of 64 tokens",
        build_bert},
    Row{"nasnet_cell", "One normal cell of nasnet_a at 28x28: the case study", build_nasnet_cell},
    Row{"squeezenet", "SqueezeNet 1.1, torchvision", build_squeezenet},
    Row{"randwire", "RandWire, small regime: three random Watts-Strogatz stages of 32 nodes", build_randwire},
    Row{"nasrnn", "NasRNN of TASO's example: 5 steps of 512, 230 ops", build_nasrnn},
    Row{"bert_base", "BERT-base encoder: 128 token ids, 12 layers, softmax, layer norm, gelu", build_bert_base},
    Row{"transformer", "Decoder-only language model: 128 token ids, 6 pre-norm layers of 512, causal mask, logits",
        build_transformer},
    Row{"decoder",
        "Decoder of a language model on 128 token ids: 8 layers of 512, grouped queries, rotary embeddings, gated "
        "feed-forward; logits and caches",
        build_decoder},
    Row{"decoder_step", "The same, one token behind a cache of 127", build_decoder_step},
    Row{"mixture_of_experts", "Transformer, 64 tokens: 4 layers of 256, 8 gated experts, two for each token",
        build_mixture_of_experts},
    Row{"two_towers", "Recommender: 26 categories and 13 numbers, two towers of three layers, cosine",
        build_two_towers},
    Row{"bilstm", "Three bidirectional LSTM layers of 2 x 256 over 64 steps", build_bilstm},
    Row{"bigru", "Three bidirectional GRU layers of 2 x 256 over 64 steps", build_bigru},
    Row{"inception_resnet", "Inception-ResNet-v2, 299x299: batch norm as nodes, linear head", build_inception_resnet},
    Row{"multi_task", "A residual trunk at 256x256 with five heads: segmentation, depth, boxes, keypoints, attributes",
        build_multi_task},
    Row{"mlp", "Perceptron 784-512-512-10", build_mlp},
    Row{"resnet50_taso", "ResNet-50 of TASO's example: from 64x56x56, no batch norm, no head; 84 ops",
        build_resnet50_taso, true},
    Row{"resnext50_taso", "ResNeXt-50 of TASO's example: stem, no batch norm, no head; 86 ops", build_resnext50_taso,
        true},
    Row{"rnntc_sru_unshared", "RNNTC-SRU as MetaFlow builds it: three weights of its own for each step",
        build_rnntc_sru_unshared, true},
    Row{"bert_taso_as_shipped",
        "BERT exactly as TASO ships it: the output projection reads the layer's input, and the "
        "attention results dangle as outputs",
        build_bert_taso_as_shipped, true},
};

}  // namespace

const std::vector<ZooEntry>& zoo_models() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> all;
    for (const Row& row : kRows) all.push_back({std::string(row.name), std::string(row.description), row.is_variant});
    return all;
  }();
  return entries;
}

Graph build_zoo_model(std::string_view name, int64_t batch) {
  AG_CHECK_USER(batch >= 1, ValueError, "[zoo] batch: expected 1 or more, got {} (model {})", batch, name);
  for (const Row& row : kRows) {
    if (row.name == name) return row.build(batch);
  }
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  throw UserError(fmt::format("[zoo] model '{}': unknown{}; 'zoo list' prints all {}", name, did_you_mean(name, names),
                              names.size()));
}

Graph outline_zoo_model(std::string_view name, int64_t batch) {
  const UndrawnWeights undrawn;
  return build_zoo_model(name, batch);
}

}  // namespace autograph
