// Normalisation form C (Unicode Standard Annex 15) of UTF-8 text, as of Unicode 9: see is_newer_than_nfc.
//
// Ill-formed bytes pass through unchanged. Time is O(n log n) whatever the text says. Pure functions; any thread.
#pragma once
#include <string>
#include <string_view>

namespace troupe::unicode {

// False: `text` is in NFC already. True: it may not be (a quick check; no false negatives).
bool may_need_nfc(std::string_view text) noexcept;

std::string to_nfc(std::string_view text);

} // namespace troupe::unicode
