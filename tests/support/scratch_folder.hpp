// A folder for one test's files, gone with it.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

namespace troupe::testing {

class scratch_folder {
public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

} // namespace troupe::testing
