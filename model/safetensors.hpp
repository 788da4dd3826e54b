// The safetensors container: a JSON header that names each tensor's type, shape and place, then the data.
//
// Promises: header size, types, shapes, offsets and sizes were checked against the file's real size with overflow-safe
// arithmetic; tensors lie inside the file and do not overlap. A file that breaks this gets errc::model_format and a line that
// names the tensor and the byte offset. Views point into the bytes given. Any thread.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/model_file_tensors.hpp"

namespace troupe {

// Tensors in the order of their data. `label` names the file in messages.
result<std::vector<file_tensor>> read_safetensors(std::span<const std::byte> file, const std::string& label);

} // namespace troupe
