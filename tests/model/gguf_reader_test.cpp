// Each way in which the container can lie has its case: the error names the field.
#include <doctest/doctest.h>

#include <functional>
#include <memory>

#include "gguf_draft.hpp"
#include "model/gguf_fields.hpp"
#include "model/gguf_reader.hpp"
#include "model/gguf_writer.hpp"

using namespace troupe;
using test::gguf_draft;
using test::packed_text;
using test::packed_u32;
using test::packed_u64;

namespace {

// Held in a block of exactly its size, so that a read past the end is seen by the sanitizer.
struct held {
  std::unique_ptr<std::byte[]> bytes;
  std::size_t size;
  explicit held(const std::string& text) : bytes(new std::byte[text.size()]), size(text.size()) {
    std::copy_n(reinterpret_cast<const std::byte*>(text.data()), size, bytes.get());
  }
  std::span<const std::byte> span() const { return {bytes.get(), size}; }
};

std::string fault_of(const std::string& file, errc code = errc::model_format) {
  const held bytes(file);
  const auto read = read_gguf(bytes.span());
  if (read)
    return "(opened)";
  CHECK(read.fault().code == code);
  return read.fault().message;
}

std::string fault_after(const std::function<void(gguf_draft&)>& bend, errc code = errc::model_format) {
  auto draft = test::small_gguf();
  bend(draft);
  return fault_of(draft.bytes(), code);
}

bool says(const std::string& message, const std::string& part) {
  const bool found = message.find(part) != std::string::npos;
  if (!found)
    MESSAGE("\"" << message << "\" lacks \"" << part << "\"");
  return found;
}

} // namespace

TEST_CASE("a whole file gives its entries and tensors in order") {
  const auto draft = test::small_gguf();
  const held bytes(draft.bytes());
  const auto read = read_gguf(bytes.span());
  REQUIRE(read);
  CHECK(read->version == 3);
  CHECK(read->data_offset == draft.header_bytes());
  REQUIRE(read->entries.size() == draft.entries.size());
  CHECK(read->entries[0].first == "general.architecture");
  REQUIRE(read->tensors.size() == draft.tensors.size());
  CHECK(read->tensors[2].name == "blk.0.attn_q.weight");
  CHECK(read->tensors[2].shape == std::vector<std::int64_t>{128, 64});
  CHECK(read->tensors[2].offset == read->data_offset + draft.tensors[2].offset);
  CHECK(read->tensors[2].bytes == draft.tensors[2].data.size());
}

TEST_CASE("every value type is read, and a wrong use of one names the key and its byte") {
  gguf_draft draft;
  draft.set("u8", 0, "\xff");
  draft.set("i8", 1, "\xff");
  draft.set("u16", 2, "\xff\xff");
  draft.set("i16", 3, "\xff\xff");
  draft.set("u64", 10, std::string(8, '\xff'));
  draft.set("i64", 11, std::string(8, '\xff'));
  draft.set("f64", 12, packed_u64(0x3ff8000000000000u));
  draft.set_bool("yes", 1);
  draft.set_text("text", "hello");
  draft.set_texts("texts", {"a", "", "c"});
  draft.set_i32s("numbers", {1, -2, 3});
  const held bytes(draft.bytes());
  const auto read = read_gguf(bytes.span());
  REQUIRE(read);
  gguf_fields fields(*read);
  CHECK(fields.integer("u8", 0, 255) == 255);
  CHECK(fields.integer("i8", -1, 0) == -1);
  CHECK(fields.integer("u16", 0, 65535) == 65535);
  CHECK(fields.integer("i16", -1, 0) == -1);
  CHECK(fields.integer("i64", -1, 0) == -1);
  CHECK(fields.number("f64", 0, 2) == 1.5);
  CHECK(fields.boolean("yes", false));
  CHECK(fields.text("text") == "hello");
  CHECK(fields.texts("texts") == std::vector<std::string>{"a", "", "c"});
  CHECK(fields.integers("numbers") == std::vector<std::int64_t>{1, -2, 3});
  CHECK(fields.integer("absent", 0, 9, 4) == 4);
  CHECK_FALSE(fields.failed());
  CHECK(describe(*read->find("texts")) == "[\"a\", \"\", \"c\"]");
  CHECK(describe(*read->find("u64")) == "18446744073709551615");
  const auto fault = [&](auto use) {
    gguf_fields fresh(*read);
    use(fresh);
    REQUIRE(fresh.failed());
    return fresh.fault().message;
  };
  CHECK(says(fault([](auto& f) { f.integer("u64", 0, 9); }), "u64 at byte "));
  CHECK(says(fault([](auto& f) { f.integer("u8", 0, 9); }), "255 is outside 0..9"));
  CHECK(says(fault([](auto& f) { f.integer("text", 0, 9); }), "text at byte "));
  CHECK(says(fault([](auto& f) { f.number("text", 0, 9); }), "is not a number"));
  CHECK(says(fault([](auto& f) { f.boolean("text", true); }), "is not a boolean"));
  CHECK(says(fault([](auto& f) { f.text("u8"); }), "is not a string"));
  CHECK(says(fault([](auto& f) { f.texts("numbers"); }), "is not an array of strings"));
  CHECK(says(fault([](auto& f) { f.integers("texts"); }), "is not an array of whole numbers"));
  CHECK(says(fault([](auto& f) { f.text("absent"); }), "absent: the file has no such key"));
}

TEST_CASE("a file that is cut anywhere is refused") {
  const auto draft = test::small_gguf();
  const auto whole = draft.bytes();
  for (std::size_t size = 0; size < whole.size(); size += size < draft.header_bytes() ? 1 : 997)
    CHECK(fault_of(whole.substr(0, size)) != "(opened)");
}

TEST_CASE("magic and version are checked first") {
  CHECK(says(fault_of("GGML" + std::string(60, '\0')), "magic at byte 0: is not GGUF"));
  CHECK(says(fault_of("GG"), "magic at byte 0: needs 4 bytes, the file has 2 left"));
  CHECK(says(fault_after([](auto& d) { d.version = 2; }, errc::unsupported), "version at byte 4: 2 is not supported"));
  CHECK(says(fault_after([](auto& d) { d.version = 0x03000000; }, errc::unsupported), "big-endian"));
}

TEST_CASE("counts that the file cannot hold are refused before memory is set aside") {
  for (const std::uint64_t lie : {~0ull, 1ull << 63, 1ull << 32, 1ull << 17}) {
    CHECK(says(fault_after([&](auto& d) { d.tensor_count = lie; }), "tensor count at byte 8"));
    CHECK(says(fault_after([&](auto& d) { d.entry_count = lie; }), "metadata count at byte 16"));
  }
  CHECK(says(fault_after([](auto& d) { d.tensor_count = 60'000; }), "60000 do not fit into the file"));
}

TEST_CASE("lying lengths and types of metadata are refused") {
  gguf_draft draft;
  draft.entries.push_back({"key", 8, packed_u64(~0ull)});
  CHECK(says(fault_of(draft.bytes()), "value of \"key\" at byte 39: a length of 18446744073709551615 bytes is over"));
  draft.entries[0] = {"key", 8, packed_u64(1000) + "short"};
  CHECK(says(fault_of(draft.bytes()), "needs 1000 bytes"));
  draft.entries[0] = {"key", 13, "xxxx"};
  CHECK(says(fault_of(draft.bytes()), "type of \"key\" at byte 35: 13 is no GGUF value type"));
  draft.entries[0] = {"key", 7, "\x02"};
  CHECK(says(fault_of(draft.bytes()), "a boolean is neither 0 nor 1"));
  draft.entries[0] = {"key", 9, packed_u32(9) + packed_u64(1)};
  CHECK(says(fault_of(draft.bytes()), "9 is not a type that an array can hold"));
  draft.entries[0] = {"key", 9, packed_u32(4) + packed_u64(1ull << 62)};
  CHECK(says(fault_of(draft.bytes()), "value of \"key\" count at byte 43: 4611686018427387904 is over the limit"));
  draft.entries[0] = {"key", 9, packed_u32(10) + packed_u64(1u << 20)};
  CHECK(says(fault_of(draft.bytes()), "needs 8388608 bytes"));
  draft.entries[0] = {"key", 9, packed_u32(8) + packed_u64(3) + packed_text("a") + packed_u64(~0ull - 7)};
  CHECK(says(fault_of(draft.bytes()), "is over the limit"));
  draft.entries[0] = {"", 4, packed_u32(1)};
  CHECK(says(fault_of(draft.bytes()), "key 0 at byte 24: is empty"));
}

TEST_CASE("keys and tensor names stand once") {
  CHECK(says(fault_after([](auto& d) { d.entries.push_back(d.entries[1]); }), "key \"general.name\""));
  CHECK(says(fault_after([](auto& d) { d.entries.push_back(d.entries[1]); }), "stands twice"));
  CHECK(says(fault_after([](auto& d) { d.tensors[3].name = d.tensors[2].name; }), "tensor \"blk.0.attn_q.weight\""));
}

TEST_CASE("an alignment must be a multiple of 8 and of its type") {
  for (const std::uint32_t bad : {0u, 1u, 12u, 1u << 21, 0xffffffffu})
    CHECK(says(fault_after([&](auto& d) { d.set_u32("general.alignment", bad); }), "general.alignment at byte "));
  CHECK(says(fault_after([](auto& d) { d.set_text("general.alignment", "32"); }), "is not an unsigned 32-bit number"));
  auto wide = test::small_gguf();
  wide.alignment = 64;
  wide.set_u32("general.alignment", 64);
  wide.place_tensors();
  CHECK(fault_of(wide.bytes()) == "(opened)");
}

TEST_CASE("lying tensor infos are refused") {
  const auto bent = [](auto bend, errc code = errc::model_format) {
    return fault_after([&](gguf_draft& d) { bend(d.named("blk.0.attn_k.weight")); }, code);
  };
  CHECK(says(bent([](auto& t) { t.extents = {}; }), "dimension count of \"blk.0.attn_k.weight\""));
  CHECK(says(bent([](auto& t) { t.extents = {64, 1, 1, 1, 1}; }), "5 is outside 1..4"));
  CHECK(says(bent([](auto& t) { t.extents = {64, 0}; }), "dimension 1 of \"blk.0.attn_k.weight\""));
  CHECK(says(bent([](auto& t) { t.extents = {~0ull, 2}; }), "is out of range"));
  CHECK(says(bent([](auto& t) { t.extents = {64, 1ull << 40, 1ull << 40}; }), "their product overflows"));
  CHECK(says(bent([](auto& t) { t.extents = {1ull << 42, 1ull << 30}; }), "their product overflows"));
  CHECK(says(bent([](auto& t) { t.extents = {64, 1ull << 41}; }), "leave the data section"));
  CHECK(says(bent([](auto& t) { t.type = 10; }, errc::unsupported), "tensor type 10 is not supported"));
  CHECK(says(bent([](auto& t) { t.type = 0xffffffffu; }, errc::unsupported), "type of \"blk.0.attn_k.weight\""));
  CHECK(says(bent([](auto& t) { t.type = 2, t.extents = {48, 64}; }), "48 is not a whole number of Q4_0 blocks of 32"));
  CHECK(says(bent([](auto& t) { t.offset += 4; }), "is not a multiple of 32"));
  CHECK(says(bent([](auto& t) { t.offset = ~0ull - 31; }), "leave the data section"));
  CHECK(says(bent([](auto& t) { t.offset = 1ull << 40; }), "data of \"blk.0.attn_k.weight\""));
  CHECK(says(bent([](auto& t) { t.offset -= 32; }), "overlaps that of"));
  CHECK(says(bent([](auto& t) { t.offset = 0; }), "overlaps that of"));
  CHECK(says(bent([](auto& t) { t.name = ""; }), "is empty"));
  CHECK(says(bent([](auto& t) { t.name = std::string(65, 'n'); }), "a length of 65 bytes is over the limit of 64"));
}

TEST_CASE("control bytes of a file do not reach messages") {
  CHECK(says(fault_after([](auto& d) { d.tensors[1].name = "x\x1b[2J", d.tensors[1].type = 77; }, errc::unsupported),
             "\"x?[2J\""));
}

TEST_CASE("what the writer lays out, the reader reads") {
  gguf_writer writer;
  writer.add_text("general.architecture", "none");
  writer.add_u32("n", 7);
  writer.add_f32("x", 0.5f);
  writer.add_bool("b", true);
  writer.add_texts("t", {"one", "two"});
  writer.add_i32s("i", {-1, 5});
  const auto a = writer.add_tensor("a", weight_type::q4_k, {3, 512});
  const auto b = writer.add_tensor("b", weight_type::f16, {5});
  CHECK(writer.bytes_of(a) == 3 * 2 * 144);
  CHECK(writer.offset_of(b) == 864);
  CHECK(writer.data_bytes() == 864 + 32);
  auto bytes = writer.header();
  bytes.resize(bytes.size() + writer.data_bytes());
  const auto read = read_gguf(bytes);
  REQUIRE(read);
  gguf_fields fields(*read);
  CHECK(fields.integer("n", 0, 9) == 7);
  CHECK(fields.number("x", 0, 9) == 0.5);
  CHECK(fields.boolean("b", false));
  CHECK(fields.texts("t") == std::vector<std::string>{"one", "two"});
  CHECK(fields.integers("i") == std::vector<std::int64_t>{-1, 5});
  REQUIRE(read->tensors.size() == 2);
  CHECK(read->tensors[0].type == weight_type::q4_k);
  CHECK(read->tensors[0].shape == std::vector<std::int64_t>{3, 512});
  CHECK(read->tensors[1].offset == read->data_offset + 864);
}
