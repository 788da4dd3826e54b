#include "model/hf_folder.hpp"

#include <set>

#include "config/limits.hpp"
#include "model/hf_config.hpp"
#include "model/hf_tokenizer.hpp"
#include "model/mapped_file.hpp"
#include "model/model_file_checks.hpp"
#include "model/model_file_tensors.hpp"
#include "model/safetensors.hpp"

namespace troupe {

namespace {

constexpr std::size_t shards_max = 1024;
constexpr std::size_t metadata_text_bytes_max = 200;

using mappings = std::vector<std::shared_ptr<const mapped_file>>;

bool present(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The shards' file names and which tensor is said to be where.
struct shard_index {
  std::set<std::string> files;
  std::vector<std::pair<std::string, std::string>> places; // tensor, file
};

result<shard_index> read_index(const std::filesystem::path& path) {
  auto document = json_document::read(path);
  if (!document)
    return document.fault();
  hf_fields fields(*document);
  simdjson::dom::object map;
  const auto element = fields.find("weight_map");
  if (!element || element->get(map))
    return fail(errc::model_format, document->label() + ": weight_map: is not an object");
  shard_index out;
  for (const auto field : map) {
    std::string_view name;
    // A shard lies in the same folder: a name with a path in it would reach outside.
    if (field.value.get(name) || name.empty() || name.find('/') != std::string_view::npos || name.front() == '.' ||
        name.find('\0') != std::string_view::npos)
      return fail(errc::model_format,
                  document->label() + ": weight_map: the file of " + in_quotes(field.key) + " is not a plain file name");
    out.files.emplace(name);
    out.places.emplace_back(field.key, name);
  }
  if (out.files.empty() || out.files.size() > shards_max)
    return fail(errc::model_format, document->label() + ": weight_map: names " + std::to_string(out.files.size()) + " files");
  return out;
}

result<void> add_shard(const std::filesystem::path& path, mappings& storage, file_tensors& tensors) {
  auto file = mapped_file::open(path);
  if (!file)
    return fail(file.fault().code, file.fault().message);
  auto found = read_safetensors((*file)->bytes(), path.filename().string());
  if (!found)
    return found.fault();
  for (auto& tensor : *found)
    if (auto added = tensors.add(std::move(tensor)); !added)
      return fail(added.fault().code, path.filename().string() + ": " + added.fault().message);
  storage.push_back(std::move(*file));
  return {};
}

result<void> add_weights(const std::filesystem::path& folder, mappings& storage, file_tensors& tensors) {
  if (present(folder / "model.safetensors"))
    return add_shard(folder / "model.safetensors", storage, tensors);
  if (!present(folder / "model.safetensors.index.json"))
    return fail(errc::not_found, "neither model.safetensors nor model.safetensors.index.json is there");
  auto index = read_index(folder / "model.safetensors.index.json");
  if (!index)
    return index.fault();
  for (const auto& name : index->files)
    if (auto added = add_shard(folder / name, storage, tensors); !added)
      return added;
  for (const auto& [tensor, file] : index->places)
    if (tensors.find(tensor) == nullptr)
      return fail(errc::model_format,
                  "model.safetensors.index.json: tensor " + in_quotes(tensor) + " is not in " + in_quotes(file));
  return {};
}

void abridge_metadata(const json_document& document, model_file& out) {
  for (const auto field : document.root()) {
    std::string text = simdjson::minify(field.value);
    if (text.size() > metadata_text_bytes_max)
      text = text.substr(0, metadata_text_bytes_max) + "...";
    out.metadata.emplace_back(document.label() + " " + std::string(field.key), std::move(text));
  }
}

result<void> read_template(const std::filesystem::path& folder, model_file& out) {
  if (!present(folder / "chat_template.jinja"))
    return {};
  auto file = mapped_file::open(folder / "chat_template.jinja");
  if (!file)
    return file.fault();
  const auto bytes = (*file)->bytes();
  if (bytes.size() > limits::gguf_string_bytes_max)
    return fail(errc::model_format, "chat_template.jinja: " + std::to_string(bytes.size()) + " bytes are too many");
  out.chat_template.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return {};
}

// tokenizer.json, and what tokenizer_config.json and config.json say about single tokens.
result<void> read_tokenizer(const std::filesystem::path& folder, hf_fields& config, model_file& out) {
  auto document = json_document::read(folder / "tokenizer.json");
  if (!document)
    return document.fault();
  auto tokens = hf_tokenizer(*document, out.weights.shape.vocabulary);
  if (!tokens)
    return tokens.fault();
  out.tokenizer = std::move(*tokens);
  if (present(folder / "tokenizer_config.json")) {
    auto named = json_document::read(folder / "tokenizer_config.json");
    if (!named)
      return named.fault();
    hf_fields fields(*named);
    hf_named_tokens(fields, out.tokenizer);
    out.chat_template = hf_chat_template(fields);
    if (fields.failed())
      return fields.fault();
  }
  const auto from_config = [&](const char* key, token_id& id) {
    const auto ids = hf_token_ids(config, key);
    if (id < 0 && !ids.empty())
      id = ids.front();
    return ids;
  };
  from_config("bos_token_id", out.tokenizer.bos);
  out.end_tokens = from_config("eos_token_id", out.tokenizer.eos);
  from_config("pad_token_id", out.tokenizer.padding);
  if (config.failed())
    return config.fault();
  return read_template(folder, out);
}

result<void> read_generation(const std::filesystem::path& folder, model_file& out) {
  if (!present(folder / "generation_config.json"))
    return {};
  auto document = json_document::read(folder / "generation_config.json");
  if (!document)
    return document.fault();
  hf_fields fields(*document);
  out.sampling = hf_sampling(fields, out.has_sampling);
  const auto ends = hf_token_ids(fields, "eos_token_id");
  out.end_tokens.insert(out.end_tokens.end(), ends.begin(), ends.end());
  if (fields.failed())
    return fields.fault();
  abridge_metadata(*document, out);
  return check_sampling(out.sampling);
}

} // namespace

result<model_file> open_hf_folder(const std::filesystem::path& folder) {
  auto document = json_document::read(folder / "config.json");
  if (!document)
    return document.fault();
  hf_fields config(*document);
  model_file out;
  out.format = "safetensors";
  hyperparameters& shape = out.weights.shape;
  shape = hf_hyperparameters(config);
  const bool says_tied = config.has("tie_word_embeddings");
  const bool tied = config.boolean("tie_word_embeddings", false);
  if (config.failed())
    return config.fault();
  shape.name = std::filesystem::absolute(folder).lexically_normal().filename().string();
  if (shape.name.empty()) // the path ended in a slash
    shape.name = std::filesystem::absolute(folder).lexically_normal().parent_path().filename().string();
  if (auto checked = check_shape(shape); !checked)
    return fail(checked.fault().code, "config.json: " + checked.fault().message);

  auto storage = std::make_shared<mappings>();
  file_tensors tensors(tensor_naming::hugging_face);
  if (auto added = add_weights(folder, *storage, tensors); !added)
    return added.fault();
  for (const auto& tensor : tensors.all())
    out.table.push_back(tensor.row);
  shape.tied_output = says_tied ? tied : tensors.find("lm_head.weight") == nullptr;
  // Embedding models are stored without the outer "model.".
  const bool bare = tensors.find("model.embed_tokens.weight") == nullptr && tensors.find("embed_tokens.weight") != nullptr;
  if (auto bound = tensors.bind(out.weights, bare ? "" : "model."); !bound)
    return bound.fault();
  abridge_metadata(*document, out);
  if (auto read = read_tokenizer(folder, config, out); !read)
    return read.fault();
  if (auto read = read_generation(folder, out); !read)
    return read.fault();
  if (auto checked = check_tokenizer(out.tokenizer, shape.vocabulary); !checked)
    return fail(checked.fault().code, "tokenizer.json: " + checked.fault().message);
  if (auto completed = complete_end_tokens(out); !completed)
    return completed.fault();
  out.weights.storage = std::move(storage);
  return out;
}

} // namespace troupe
