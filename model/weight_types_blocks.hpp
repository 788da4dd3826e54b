// One function a block type and direction, for weight_types.cpp alone. `blocks` counts blocks; layouts stand beside the
// definitions. K types have 256 weights a block, the others 32.
#pragma once
#include <cstddef>
#include <cstdint>

namespace troupe::blocks {

void expand_q4_0(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q4_1(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q5_0(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q5_1(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q8_0(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q4_k(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q5_k(const std::byte* from, float* to, std::int64_t blocks) noexcept;
void expand_q6_k(const std::byte* from, float* to, std::int64_t blocks) noexcept;

void pack_q4_0(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q4_1(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q5_0(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q5_1(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q8_0(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q4_k(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q5_k(const float* from, std::byte* to, std::int64_t blocks) noexcept;
void pack_q6_k(const float* from, std::byte* to, std::int64_t blocks) noexcept;

} // namespace troupe::blocks
