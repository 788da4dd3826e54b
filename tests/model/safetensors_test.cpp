// The safetensors container and its ways to lie.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "base/random.hpp"
#include "model/safetensors.hpp"
#include "safetensors_draft.hpp"

using namespace troupe;
using test::safetensors_draft;

namespace {

result<std::vector<file_tensor>> read(const std::string& file) {
  // In a block of exactly its size, so that a read past the end is seen by the sanitizer.
  const std::unique_ptr<std::byte[]> bytes(new std::byte[file.size()]);
  std::memcpy(bytes.get(), file.data(), file.size());
  return read_safetensors({bytes.get(), file.size()}, "w.safetensors");
}

std::string fault_of(const std::string& file, errc code = errc::model_format) {
  const auto found = read(file);
  if (found)
    return "(opened)";
  CHECK(found.fault().code == code);
  return found.fault().message;
}

bool says(const std::string& message, const std::string& part) {
  const bool found = message.find(part) != std::string::npos;
  if (!found)
    MESSAGE("\"" << message << "\" lacks \"" << part << "\"");
  return found;
}

safetensors_draft two() {
  return {{{"a", "F32", {2, 3}, std::string(24, 'x')}, {"b", "BF16", {4}, std::string(8, 'y')}}};
}

std::string with_header(std::string header) {
  header.resize(header.size() + header.size() % 2, ' '); // the data at an even address
  return two().bytes_with(header);
}

std::string entry(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

} // namespace

TEST_CASE("tensors are given in the order of their data, metadata aside") {
  const auto found = read(with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}} )"));
  REQUIRE(found);
  REQUIRE(found->size() == 2);
  CHECK((*found)[0].row.name == "a");
  CHECK((*found)[0].row.shape == std::vector<std::int64_t>{2, 3});
  CHECK((*found)[0].row.bytes == 24);
  CHECK((*found)[1].row.name == "b");
  CHECK((*found)[1].row.type == weight_type::bf16);
  CHECK((*found)[1].row.offset == (*found)[0].row.offset + 24);
}

TEST_CASE("a lying header size is refused") {
  CHECK(says(fault_of("1234"), "header size: the file has only 4 bytes (byte 0)"));
  for (const std::uint64_t lie : {~0ull, 1ull << 63, (100ull << 20) + 1}) {
    auto file = two().bytes();
    std::memcpy(file.data(), &lie, 8);
    CHECK(says(fault_of(file), "is over the limit"));
  }
  auto file = two().bytes();
  const std::uint64_t lie = file.size();
  std::memcpy(file.data(), &lie, 8);
  CHECK(says(fault_of(file), "do not fit into the file"));
}

TEST_CASE("a header that is no JSON object is refused") {
  CHECK(says(fault_of(with_header("{\"a\": ")), "header at byte 8: not valid JSON"));
  CHECK(says(fault_of(with_header("[1, 2] ")), "not a JSON object"));
  CHECK(says(fault_of(with_header("")), "not valid JSON"));
  CHECK(says(fault_of(with_header(std::string(5000, '['))), "not valid JSON"));
}

TEST_CASE("lying entries are refused by name") {
  CHECK(says(fault_of(with_header(R"({"a":5})")), "tensor \"a\": has no dtype"));
  CHECK(says(fault_of(with_header(entry("I8", "[2,3]", "[0,6]")), errc::unsupported), "its type \"I8\" is not supported"));
  CHECK(says(fault_of(with_header(R"({"a":{"dtype":"F32","data_offsets":[0,24]}})")), "has no shape array"));
  CHECK(says(fault_of(with_header(entry("F32", "[-2,3]", "[0,24]"))), "has a dimension that is out of range"));
  CHECK(says(fault_of(with_header(entry("F32", "[2.5,3]", "[0,24]"))), "has a dimension that is out of range"));
  CHECK(says(fault_of(with_header(entry("F32", "[4398046511104,4398046511104]", "[0,24]"))),
             "the product of its dimensions overflows"));
  CHECK(says(fault_of(with_header(entry("F32", "[1,1,1,1,1,1,1,1,6]", "[0,24]"))), "has 9 dimensions"));
  CHECK(says(fault_of(with_header(entry("F32", "[2,3]", "[0]"))), "has no data_offsets of two numbers"));
  CHECK(says(fault_of(with_header(entry("F32", "[2,3]", "[24,0]"))), "leave the data section of 32 bytes"));
  CHECK(says(fault_of(with_header(entry("F32", "[2,3]", "[16,40]"))), "leave the data section"));
  CHECK(says(fault_of(with_header(entry("F32", "[2,3]", "[18446744073709551600,8]"))), "leave the data section"));
  CHECK(says(fault_of(with_header(entry("F32", "[2,3]", "[0,20]"))), "data_offsets give 20 bytes, type and shape 24"));
  CHECK(says(
      fault_of(with_header(
          R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[4],"data_offsets":[20,28]}})")),
      "tensor \"b\": its data overlap those of \"a\""));
}

TEST_CASE("data at an odd address are refused") {
  auto header = two().header();
  header += ' ';
  CHECK(says(fault_of(two().bytes_with(header)), "its data stand at an odd address"));
}

TEST_CASE("a damaged safetensors file gives tensors inside it or an error") {
  constexpr std::uint64_t seed = 77;
  MESSAGE("seed " << seed);
  const std::string whole = test::small_hf().weights.bytes();
  const std::size_t header = test::small_hf().weights.header().size() + 8;
  std::uint64_t counter = 0;
  const auto below = [&](std::uint64_t bound) { return random_at(seed, counter++) % bound; };
  const std::string digits = "0123456789{}[],:\"-.eE \\n";
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bent = whole;
    for (std::uint64_t i = below(3) + 1; i > 0; --i)
      switch (below(4)) {
      case 0: bent.resize(below(bent.size()) + 1); break;
      case 1: bent[below(std::min(header, bent.size()))] = static_cast<char>(below(256)); break;
      case 2: bent[below(std::min(header, bent.size()))] = digits[below(digits.size())]; break;
      default: bent.insert(below(std::min(header, bent.size())), 1, digits[below(digits.size())]); break;
      }
    CAPTURE(round);
    const std::unique_ptr<std::byte[]> bytes(new std::byte[bent.size()]);
    std::memcpy(bytes.get(), bent.data(), bent.size());
    const auto found = read_safetensors({bytes.get(), bent.size()}, "bent");
    if (!found) {
      CHECK_FALSE(found.fault().message.empty());
      continue;
    }
    ++opened;
    for (const auto& tensor : *found) {
      REQUIRE(tensor.row.offset <= bent.size());
      REQUIRE(tensor.row.bytes <= bent.size() - tensor.row.offset);
      CHECK(tensor.data == bytes.get() + tensor.row.offset);
    }
  }
  CHECK(opened > 50);
}
