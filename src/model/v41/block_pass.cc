#include "model/v41/block_pass.h"

#include <algorithm>
#include <string>

#include "model/v41/rope_table.h"

namespace deepinfer::model::v41 {

using kernels::kGroup;
using kernels::Q8Rows;
using kernels::RowsView;

BlockPass::BlockPass(const Model& model, ForwardContext& context)
    : model_(model),
      config_(model.config_),
      kernels_(model.kernels_),
      pool_(context.pool()),
      workspace_(context.workspace()),
      probe_(context.probe) {}

void BlockPass::Observe(std::string_view block, std::string_view leaf, DType dtype,
                        std::initializer_list<int64_t> shape, void* data) const {
  if (probe_ == nullptr) return;
  std::string name(block);
  if (!name.empty()) name += '.';
  name += leaf;
  auto* bytes = static_cast<std::byte*>(data);
  probe_->OnTensor(name, TensorView{dtype, Shape(shape), bytes}, bytes);
}

void BlockPass::Embed(const int32_t* tokens) {
  const int64_t hidden = config_.hidden_size, streams = config_.hc_mult;
  h_ = workspace_.Get<bf16>(Slot::kStreams, rows_ * streams * hidden);
  pre_ = workspace_.Get<float>(Slot::kPre, rows_ * streams);
  for (int64_t r = 0; r < rows_; ++r) {
    const bf16* row = model_.weights_->embed.values + tokens[r] * hidden;
    for (int64_t s = 0; s < streams; ++s) {
      std::copy_n(row, hidden, h_ + (r * streams + s) * hidden);
      pre_[r * streams + s] = s == 0 ? 1.0f : 0.0f;
    }
  }
}

Q8Rows BlockPass::Quantize(const RowsView& x, Slot codes, Slot scales) {
  const Q8Rows out{workspace_.Get<uint8_t>(codes, x.rows * x.cols),
                   workspace_.Get<uint8_t>(scales, x.rows * (x.cols / kGroup)), x.rows, x.cols};
  kernels_.quantize_q8(pool_, x, out);
  return out;
}

void BlockPass::FillRotation(const RopeTable& table, std::span<const int64_t> positions,
                             const Rotation& rotation) const {
  table.Fill(positions, rotation.cos, rotation.sin);
}

}  // namespace deepinfer::model::v41
