// SPDX-License-Identifier: Apache-2.0
#include "run/run_info.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "model/errors.h"

namespace gradcheck {
namespace {

constexpr std::array<const char*, 6> kReportedVariables = {
    "OMP_NUM_THREADS", "TORCH_DISTRIBUTED_DEBUG", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG",
    "NCCL_ALGO",       "GLOO_SOCKET_IFNAME"};

std::string rfc3339(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text;
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), length};
}

}  // namespace

std::optional<std::int64_t> source_date_epoch(const Host& host) {
  const auto text = host.env("SOURCE_DATE_EPOCH");
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  const bool whole = error == std::errc() && end == text->data() + text->size();
  constexpr std::int64_t kYear10000 = 253402300800;
  if (whole && value >= 0 && value < kYear10000) return value;
  throw UsageError("SOURCE_DATE_EPOCH=" + *text + ": must be seconds from 1970 to the year 9999");
}

// FNV-1a (Fowler, Noll, Vo): an id, not a checksum.
std::string hashed_id(const std::vector<std::string>& texts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& text : texts) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

RunInfo begin_run(const Host& host, const std::string& tool_version,
                  const std::vector<std::string>& argv, const std::vector<std::string>& identity) {
  const auto epoch = source_date_epoch(host);
  RunInfo info;
  info.id = epoch ? hashed_id(identity) : host.random_id();
  info.started_at = rfc3339(epoch.value_or(host.unix_seconds()));
  info.host = epoch ? "" : host.name;
  info.versions = {{"gradcheck", tool_version}};
  info.argv = argv;
  for (const char* name : kReportedVariables) {
    if (const auto value = host.env(name)) info.env.emplace_back(name, *value);
  }
  return info;
}

}  // namespace gradcheck
