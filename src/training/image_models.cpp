#include "training/image_models.h"

#include "autograph/nn/layers.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/shape.h"

namespace autograph {
namespace {

const nn::Sizes kWindow{3};
const nn::ConvSettings kPadded{.padding = {1}};

Var as_images(const Var& x, const ImageModelSizes& sizes) {
  return (reshape(x, {-1, sizes.channels, sizes.side, sizes.side}) - sizes.mean) * (1 / sizes.deviation);
}

class SmallConvNet : public nn::Module {
 public:
  explicit SmallConvNet(const ImageModelSizes& sizes)
      : sizes_(sizes),
        conv1_(add<nn::Conv2d>("conv1", sizes.channels, sizes.width, kWindow, kPadded)),
        conv2_(add<nn::Conv2d>("conv2", sizes.width, 2 * sizes.width, kWindow, kPadded)),
        fc1_(add<nn::Linear>("fc1", 2 * sizes.width * (sizes.side / 4) * (sizes.side / 4), sizes.hidden)),
        fc2_(add<nn::Linear>("fc2", sizes.hidden, sizes.classes)),
        dropout_(add<nn::Dropout>("dropout", sizes.dropout)) {}

  Var forward(const Var& x) override {
    Var y = as_images(x, sizes_);
    y = pool_(relu(conv1_(y)));
    y = pool_(relu(conv2_(y)));
    return fc2_(dropout_(relu(fc1_(flatten(y, 1)))));
  }

 private:
  ImageModelSizes sizes_;
  nn::Conv2d& conv1_;
  nn::Conv2d& conv2_;
  nn::Linear& fc1_;
  nn::Linear& fc2_;
  nn::Dropout& dropout_;
  nn::MaxPool pool_{{2}};
};

class VggLikeNet : public nn::Module {
 public:
  explicit VggLikeNet(const ImageModelSizes& sizes) : sizes_(sizes) {
    int64_t from = sizes.channels;
    for (const int64_t width : {sizes.width, 2 * sizes.width, 4 * sizes.width}) {
      for (const int64_t in : {from, width}) {
        features_.push<nn::Conv2d>(in, width, kWindow, nn::ConvSettings{.padding = {1}, .bias = false});
        features_.push<nn::BatchNorm>(width).push(relu);
      }
      features_.push<nn::MaxPool>(nn::Sizes{2});
      from = width;
    }
    head_.push<nn::GlobalAvgPool>().push<nn::Dropout>(sizes.dropout).push<nn::Linear>(from, sizes.classes);
  }

  Var forward(const Var& x) override { return head_(features_(as_images(x, sizes_))); }

 private:
  ImageModelSizes sizes_;
  nn::Sequential& features_ = add<nn::Sequential>("features");
  nn::Sequential& head_ = add<nn::Sequential>("head");
};

}  // namespace

std::unique_ptr<nn::Module> small_conv_net(const ImageModelSizes& sizes) {
  return std::make_unique<SmallConvNet>(sizes);
}

std::unique_ptr<nn::Module> vgg_like_net(const ImageModelSizes& sizes) { return std::make_unique<VggLikeNet>(sizes); }

}  // namespace autograph
