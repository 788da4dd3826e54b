// Binds the tensors of a file, whatever its naming, to the places where the network needs them. Promises: every view in the
// result has exactly the shape that the hyperparameters ask for, and no tensor of the file is silently left out (a bias or an
// adapter that we would ignore changes what the model says). Used while opening; one thread.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "model/model_file.hpp"

namespace troupe {

enum class tensor_naming { gguf, hugging_face };

struct file_tensor {
  tensor_row row;
  const std::byte* data = nullptr;
};

class file_tensors {
public:
  explicit file_tensors(tensor_naming naming) : naming_(naming) {}

  // errc::model_format where the name was added before.
  result<void> add(file_tensor tensor);
  const file_tensor* find(std::string_view name) const;
  // Marks a tensor as accounted for.
  void take(std::string_view name) { taken_.insert_or_assign(std::string(name), true); }

  // Sets qkv_bias, qk_norm and vocabulary of `shape` from what the file has, and layers, embedding and output of `weights`.
  // `shape.tied_output` must be set before. `prefix`: what stands before layer names ("model." in most Hugging Face files).
  result<void> bind(model_weights& weights, std::string_view prefix = "");

  const std::vector<file_tensor>& all() const noexcept { return tensors_; }

private:
  struct need;
  result<tensor_view> take_view(const std::string& name, const need& wanted);
  result<void> bind_layer(model_weights& weights, int layer, std::string_view prefix);
  result<void> refuse_strangers() const;

  tensor_naming naming_;
  std::vector<file_tensor> tensors_;
  std::unordered_map<std::string, std::size_t> index_;
  std::unordered_map<std::string, bool> taken_;
};

// The name of a layer's tensor, for writers: "blk.3.attn_q.weight". `slot` as in layer_slots().
struct layer_slot {
  tensor_view layer_weights::*member;
  std::string_view gguf;         // after "blk.N."
  std::string_view hugging_face; // after "model.layers.N."
};
const std::vector<layer_slot>& layer_slots();

} // namespace troupe
