#include "model/model_file.hpp"

#include <exception>
#include <new>

#include "model/gguf_model.hpp"
#include "model/hf_folder.hpp"
#include "model/mapped_file.hpp"

namespace troupe {

namespace {

// The one GGUF file of a folder that is no Hugging Face folder; empty where there is none or more than one.
std::filesystem::path only_gguf_in(const std::filesystem::path& folder) {
  std::filesystem::path found;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().extension() != ".gguf")
      continue;
    if (!found.empty())
      return {};
    found = at->path();
  }
  return found;
}

result<model_file> open_gguf_path(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file)
    return file.fault();
  return open_gguf((*file)->bytes(), *file, path.stem().string());
}

result<model_file> open_any(const std::filesystem::path& path) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  if (!std::filesystem::exists(status))
    return fail(errc::not_found, "there is no such file or folder");
  if (std::filesystem::is_directory(status)) {
    if (!std::filesystem::exists(path / "config.json", failed))
      if (const auto inner = only_gguf_in(path); !inner.empty())
        return open_gguf_path(inner);
    return open_hf_folder(path);
  }
  if (path.extension() == ".safetensors")
    return open_hf_folder(std::filesystem::absolute(path).parent_path());
  return open_gguf_path(path);
}

} // namespace

result<model_file> open_model(const std::filesystem::path& path) {
  const auto with_path = [&](const error& e) {
    const std::string name = path.string();
    return fail(e.code, e.message.starts_with(name) ? e.message : name + ": " + e.message);
  };
  try {
    auto opened = open_any(path);
    if (!opened)
      return with_path(opened.fault());
    opened->weights.mapped = true;
    return opened;
  } catch (const std::bad_alloc&) {
    return with_path(fail(errc::no_memory, "the host's memory does not suffice to read it"));
  } catch (const std::filesystem::filesystem_error& e) {
    return with_path(fail(errc::io_failed, e.code().message()));
  }
}

} // namespace troupe
