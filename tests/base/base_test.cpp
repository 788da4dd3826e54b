#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/check.hpp"
#include "base/ids.hpp"
#include "base/random.hpp"
#include "base/result.hpp"

using namespace troupe;

TEST_CASE("a result holds its value or its error and says which") {
  result<int> good = 3;
  result<int> bad = fail(errc::not_found, "no such thing");
  CHECK(good);
  CHECK(*good == 3);
  CHECK_FALSE(bad);
  CHECK(bad.fault().code == errc::not_found);
  CHECK_THROWS_AS((void)bad.value(), check_failed);
  CHECK_THROWS_AS((void)good.fault(), check_failed);
}

TEST_CASE("every error code has a name of its own") {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(errc::internal); ++i)
    names.insert(name_of(static_cast<errc>(i)));
  CHECK(names.size() == static_cast<std::size_t>(errc::internal) + 1);
  CHECK(names.count("unknown") == 0);
}

TEST_CASE("SplitMix64 gives the published first outputs of seed 1234567") {
  // Reference values of the public-domain splitmix64.c with x = 1234567.
  std::uint64_t state = 1234567;
  const std::uint64_t expected[] = {6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
                                    4593380528125082431ull, 16408922859458223821ull};
  for (auto value : expected) {
    CHECK(mix64(state) == value);
    state += 0x9e3779b97f4a7c15ull;
  }
}

TEST_CASE("draws depend on key and counter alone and are uniform") {
  CHECK(random_at(7, 3) == random_at(7, 3));
  CHECK(random_at(7, 3) != random_at(7, 4));
  CHECK(random_at(7, 3) != random_at(8, 3));
  double sum = 0;
  double squares = 0;
  constexpr int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double u = uniform_at(42, static_cast<std::uint64_t>(i));
    REQUIRE(u >= 0.0);
    REQUIRE(u < 1.0);
    sum += u;
    squares += u * u;
  }
  CHECK(std::abs(sum / n - 0.5) < 0.005);
  CHECK(std::abs(squares / n - 1.0 / 3.0) < 0.005);
}
