#include "memory/tier_store.hpp"

#include <cstring>
#include <limits>

#include <sys/mman.h>

#include "base/check.hpp"

namespace troupe {

namespace {

constexpr auto host_level = index_of(tier_level::host);
constexpr auto disk_level = index_of(tier_level::disk);

result<std::byte*> reserve_memory(std::size_t page_bytes, std::uint32_t slots) {
  if (slots == 0)
    return nullptr;
  if (slots > std::numeric_limits<std::size_t>::max() / page_bytes)
    return fail(errc::no_memory, "the host tier's size exceeds the address space");
  void* memory = mmap(nullptr, slots * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(errc::no_memory, "cannot reserve " + std::to_string(slots * page_bytes >> 20) + " MiB for the host tier");
  return static_cast<std::byte*>(memory);
}

} // namespace

result<std::unique_ptr<tier_store>> tier_store::create(const tier_store_options& options) {
  if (options.slots[disk_level] == 0) {
    auto memory = reserve_memory(options.page_bytes, options.slots[host_level]);
    if (!memory)
      return memory.fault();
    return std::unique_ptr<tier_store>(new tier_store(options, *memory, std::nullopt));
  }
  auto file = tier_file::create(options.folder, {options.page_bytes, options.slots[disk_level], options.identity});
  if (!file)
    return file.fault();
  return create(options, std::move(*file));
}

result<std::unique_ptr<tier_store>> tier_store::create(const tier_store_options& options, tier_file file) {
  TROUPE_CHECK(file.shape().page_bytes == options.page_bytes && file.shape().slots == options.slots[disk_level]);
  auto memory = reserve_memory(options.page_bytes, options.slots[host_level]);
  if (!memory)
    return memory.fault();
  return std::unique_ptr<tier_store>(new tier_store(options, *memory, std::move(file)));
}

tier_store::tier_store(const tier_store_options& options, std::byte* memory, std::optional<tier_file> file)
    : page_bytes_(options.page_bytes), host_slots_(options.slots[host_level]), memory_(memory), file_(std::move(file)),
      names_(host_slots_) {}

tier_store::~tier_store() {
  if (memory_)
    munmap(memory_, host_slots_ * page_bytes_);
}

std::span<std::byte> tier_store::host(std::uint32_t slot) const {
  TROUPE_CHECK(slot < host_slots_);
  return {memory_ + slot * page_bytes_, page_bytes_};
}

moved_page tier_store::store(const page_move& move, std::span<const std::byte> page) {
  moved_page out{move_end::done, {}};
  if (const auto slot = move.slots[host_level]) {
    std::memcpy(host(*slot).data(), page.data(), page_bytes_);
    names_[*slot] = move.name;
    out.holds[host_level] = true;
  }
  if (const auto slot = move.slots[disk_level]) {
    TROUPE_CHECK(file_.has_value());
    const auto written = file_->write(*slot, move.name, page);
    out.holds[disk_level] = written.has_value();
    if (!written) {
      out.end = move_end::failed;
      last_fault_ = written.fault().message;
    }
  }
  return out;
}

moved_page tier_store::load(const page_move& move, std::span<std::byte> page) {
  moved_page out{move_end::done, {}};
  const auto slot = move.slots[index_of(move.from)];
  TROUPE_CHECK(slot.has_value());
  if (move.from == tier_level::host) {
    if (!(names_[*slot] == move.name))
      return {move_end::damaged, {}};
    std::memcpy(page.data(), host(*slot).data(), page_bytes_);
    out.holds[host_level] = true;
    return out;
  }
  TROUPE_CHECK(file_.has_value());
  out.end = file_->read(*slot, move.name, page);
  out.holds[disk_level] = out.end == move_end::done;
  if (const auto also = move.slots[host_level]; also && out.end == move_end::done) {
    std::memcpy(host(*also).data(), page.data(), page_bytes_);
    names_[*also] = move.name;
    out.holds[host_level] = true;
  }
  return out;
}

} // namespace troupe
