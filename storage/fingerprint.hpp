// What tells one file from another by all of its bytes: of models and programs, whose results are kept for later processes.
// Two that differ by chance or by work on them have different ones; it is no defence against whoever makes files on purpose.
#pragma once
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace troupe {

// Of a file, or of a folder's files by name and content (not those of folders within). 32 hexadecimal digits; io_failed where
// one can't be read. Reads everything: gigabytes a second from memory.
result<std::string> fingerprint_of(const std::filesystem::path& path);

} // namespace troupe
