#include "model/convert.hpp"

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "model/convert_metadata.hpp"
#include "model/model_file_tensors.hpp"
#include "model/weight_types.hpp"
#include "model/weight_types_half.hpp"

namespace troupe {

namespace {

constexpr std::size_t buffer_bytes = 1u << 20;

// The file being written: removed unless committed.
class pending_file {
public:
  explicit pending_file(const std::filesystem::path& final_path)
      : final_(final_path), path_(final_path.string() + ".part" + std::to_string(::getpid())),
        descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0)
      note("cannot create");
  }
  ~pending_file() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
      ::unlink(path_.c_str());
    }
  }
  pending_file(const pending_file&) = delete;
  pending_file& operator=(const pending_file&) = delete;

  void write(const std::byte* bytes, std::size_t count) {
    buffer_.insert(buffer_.end(), bytes, bytes + count);
    if (buffer_.size() >= buffer_bytes)
      flush();
  }
  void pad(std::size_t count) { buffer_.insert(buffer_.end(), count, std::byte{0}); }
  bool failed() const noexcept { return !fault_.message.empty(); }
  const error& fault() const noexcept { return fault_; }

  // Data first, then the name, so that a crash leaves the old file or the whole new one.
  result<void> commit() {
    flush();
    if (!failed() && ::fsync(descriptor_) != 0)
      note("cannot write");
    if (!failed() && ::rename(path_.c_str(), final_.c_str()) != 0)
      note("cannot rename to " + final_.string());
    if (failed())
      return fault_;
    ::close(descriptor_);
    descriptor_ = -1;
    return {};
  }

private:
  void flush() {
    for (std::size_t at = 0; !failed() && at < buffer_.size();) {
      const auto written = ::write(descriptor_, buffer_.data() + at, buffer_.size() - at);
      if (written > 0)
        at += static_cast<std::size_t>(written);
      else if (errno != EINTR)
        note("cannot write");
    }
    buffer_.clear();
  }
  void note(const std::string& what) {
    fault_ = fail(errc::io_failed, path_ + ": " + what + ": " + std::generic_category().message(errno));
  }

  std::filesystem::path final_;
  std::string path_;
  int descriptor_;
  std::vector<std::byte> buffer_;
  error fault_;
};

// One tensor to write: where it comes from, what it becomes.
struct job {
  tensor_view from;
  weight_type type;
  int permuted_heads = 0; // not 0: rows are reordered from half-split to adjacent pairs, within each of so many heads
};

bool fits(weight_type type, std::int64_t columns) noexcept {
  return columns % info_of(type).block_weights == 0;
}

// The next type with at least as many bits whose blocks divide a row; F16 always does.
weight_type finer(weight_type type, std::int64_t columns) noexcept {
  while (!fits(type, columns))
    switch (type) {
    case weight_type::q4_k: type = weight_type::q5_0; break;
    case weight_type::q5_k: type = weight_type::q5_1; break;
    case weight_type::q6_k: type = weight_type::q8_0; break;
    default: type = weight_type::f16; break;
    }
  return type;
}

weight_type matrix_type(const tensor_view& from, std::optional<weight_type> wanted, bool outer) noexcept {
  if (!wanted)
    return from.type;
  const bool coarse = *wanted != weight_type::f32 && *wanted != weight_type::f16 && *wanted != weight_type::bf16 &&
                      *wanted != weight_type::q8_0;
  return finer(outer && coarse ? weight_type::q6_k : *wanted, from.columns);
}

// Which source row stands at row `r` of the result: in each head, pair i was rows i and i + head_dim / 2 and becomes rows
// 2 i and 2 i + 1.
std::int64_t source_row(std::int64_t r, std::int64_t rows, int heads) noexcept {
  if (heads == 0)
    return r;
  const std::int64_t head_rows = rows / heads;
  const std::int64_t within = r % head_rows;
  return r - within + within / 2 + (within % 2) * (head_rows / 2);
}

class converter {
public:
  explicit converter(const model_file& model) : model_(model) {}

  result<void> run(const std::filesystem::path& to, std::optional<weight_type> type, const convert_progress& progress) {
    if (auto added = add_gguf_metadata(model_, type, writer_); !added)
      return added;
    plan(type);
    pending_file file(to);
    if (file.failed())
      return file.fault();
    const auto header = writer_.header();
    file.write(header.data(), header.size());
    for (std::size_t i = 0; i < jobs_.size() && !file.failed(); ++i) {
      write_tensor(jobs_[i], file);
      const std::uint64_t end = writer_.offset_of(i) + writer_.bytes_of(i);
      const std::uint64_t next = i + 1 < jobs_.size() ? writer_.offset_of(i + 1) : writer_.data_bytes();
      file.pad(static_cast<std::size_t>(next - end));
      if (progress)
        progress(end, writer_.data_bytes());
    }
    return file.commit();
  }

private:
  void add_vector(const std::string& name, const tensor_view& from, int permuted_heads = 0) {
    writer_.add_tensor(name, weight_type::f32, {from.columns});
    jobs_.push_back({from, weight_type::f32, permuted_heads});
  }

  void add_matrix(const std::string& name, const tensor_view& from, weight_type type, int permuted_heads = 0) {
    writer_.add_tensor(name, type, {from.rows, from.columns});
    jobs_.push_back({from, type, permuted_heads});
  }

  void plan(std::optional<weight_type> type) {
    const model_weights& w = model_.weights;
    const bool permute = w.shape.arch == architecture::llama && !w.shape.rope.adjacent_pairs;
    divisors_ = gguf_rope_divisors(w.shape);
    add_matrix("token_embd.weight", w.token_embedding, matrix_type(w.token_embedding, type, true));
    if (!divisors_.empty())
      add_vector("rope_freqs.weight", {weight_type::f32, 1, static_cast<std::int64_t>(divisors_.size()),
                                       reinterpret_cast<const std::byte*>(divisors_.data())});
    for (std::size_t i = 0; i < w.layers.size(); ++i)
      for (const auto& slot : layer_slots()) {
        const tensor_view& from = w.layers[i].*slot.member;
        if (!from)
          continue;
        const bool q = slot.member == &layer_weights::q || slot.member == &layer_weights::q_bias;
        const bool k = slot.member == &layer_weights::k || slot.member == &layer_weights::k_bias;
        const int heads = permute && q ? w.shape.heads : permute && k ? w.shape.kv_heads : 0;
        const std::string name = "blk." + std::to_string(i) + "." + std::string(slot.gguf);
        if (is_vector(slot))
          add_vector(name, from, heads);
        else
          add_matrix(name, from, matrix_type(from, type, false), heads);
      }
    add_vector("output_norm.weight", w.output_norm);
    if (!w.shape.tied_output)
      add_matrix("output.weight", w.output, matrix_type(w.output, type, true));
  }

  static bool is_vector(const layer_slot& slot) { return slot.gguf.ends_with("norm.weight") || slot.gguf.ends_with(".bias"); }

  void write_tensor(const job& todo, pending_file& file) {
    const tensor_view& from = todo.from;
    const auto& info = info_of(todo.type);
    const auto row_bytes = static_cast<std::size_t>(from.columns / info.block_weights * info.block_bytes);
    floats_.resize(static_cast<std::size_t>(from.columns));
    blocks_.resize(row_bytes);
    const bool permuted_vector = from.rows == 1 && todo.permuted_heads != 0;
    for (std::int64_t r = 0; r < from.rows && !file.failed(); ++r) {
      const std::byte* row = from.row(permuted_vector ? r : source_row(r, from.rows, todo.permuted_heads));
      if (from.type == todo.type && !permuted_vector) {
        file.write(row, row_bytes);
        continue;
      }
      dequantize_row(from.type, row, floats_.data(), from.columns);
      if (permuted_vector) {
        const auto before = floats_;
        for (std::int64_t c = 0; c < from.columns; ++c)
          floats_[static_cast<std::size_t>(c)] =
              before[static_cast<std::size_t>(source_row(c, from.columns, todo.permuted_heads))];
      }
      quantize_row(todo.type, floats_.data(), blocks_.data(), from.columns);
      file.write(blocks_.data(), row_bytes);
    }
  }

  const model_file& model_;
  gguf_writer writer_;
  std::vector<job> jobs_;       // by tensor number
  std::vector<float> divisors_; // a job points into it
  std::vector<float> floats_;
  std::vector<std::byte> blocks_;
};

} // namespace

// Whatever stands at `to` is replaced: a device, a link or what is being read must not be.
static result<void> check_target(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code ignored;
  const auto kind = std::filesystem::symlink_status(to, ignored).type();
  if (kind == std::filesystem::file_type::not_found || kind == std::filesystem::file_type::none)
    return {};
  if (kind != std::filesystem::file_type::regular)
    return fail(errc::invalid_argument, to.string() + ": exists and is no regular file");
  const auto folder = to.has_parent_path() ? to.parent_path() : std::filesystem::path(".");
  if (std::filesystem::equivalent(from, to, ignored) || std::filesystem::equivalent(from, folder, ignored))
    return fail(errc::invalid_argument, to.string() + ": is part of the model that would be read");
  return {};
}

result<void> convert_to_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
                             std::optional<weight_type> type, const convert_progress& progress) {
  if (auto allowed = check_target(from, to); !allowed)
    return allowed.fault();
  auto model = open_model(from);
  if (!model)
    return model.fault();
  try {
    return converter(*model).run(to, type, progress);
  } catch (const std::bad_alloc&) {
    return fail(errc::no_memory, to.string() + ": the host's memory does not suffice to write it");
  }
}

} // namespace troupe
