// Finds stop strings in text that arrives in pieces, wherever the pieces are cut.
//
// Owns: the text that may still become a stop string. Promises: no byte of a stop string is ever given out, and none that
// can't belong to one is held; of several matches the one that completes first counts, so that the answer does not depend on
// how the text was cut. Held: less than the longest stop string. Thread: its session's.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class stop_matcher {
public:
  // Empty strings are ignored.
  explicit stop_matcher(std::vector<std::string> stops);

  struct output {
    std::string text;     // safe to show
    bool stopped = false; // a stop string was completed: everything from it on is gone
  };
  output push(std::string_view text);
  // The text ends here: what was held back is text after all.
  std::string finish();

private:
  std::vector<std::string> stops_;
  std::string held_;
};

} // namespace troupe
