// SPDX-License-Identifier: Apache-2.0
#include "model/json/zygote.h"

#include <nlohmann/json.hpp>

#include "model/errors.h"

namespace gradcheck {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ReadyPacket& packet) {
  return {{"type", "ready"},     {"torch", packet.torch}, {"gloo", packet.gloo},
          {"nccl", packet.nccl}, {"cuda", packet.cuda},   {"pid", packet.pid}};
}
Json to_json(const ForkPacket& packet) { return {{"type", "fork"}, {"ranks", packet.ranks}}; }
Json to_json(const StartedPacket& packet) { return {{"type", "started"}, {"pids", packet.pids}}; }
Json to_json(const RefusedPacket& packet) { return {{"type", "refused"}, {"text", packet.text}}; }
Json to_json(const ExitPacket& packet) {
  return {{"type", "exit"},
          {"rank", packet.rank},
          {"pid", packet.pid},
          {"status", packet.status},
          {"signal", packet.signal}};
}

ReadyPacket ready_from(const Json& json) {
  return {json.at("torch"), json.at("gloo"), json.at("nccl"), json.at("cuda"), json.at("pid")};
}

ExitPacket exit_from(const Json& json) {
  return {json.at("rank"), json.at("pid"), json.at("status"), json.at("signal")};
}

ZygotePacket packet_from(const Json& json) {
  const std::string type = json.at("type");
  if (type == "ready") return ready_from(json);
  if (type == "fork") return ForkPacket{json.at("ranks")};
  if (type == "started") return StartedPacket{json.at("pids")};
  if (type == "refused") return RefusedPacket{json.at("text")};
  if (type == "exit") return exit_from(json);
  throw InfrastructureError("zygote: unknown packet type \"" + type + "\"");
}

}  // namespace

std::string packet_to_text(const ZygotePacket& packet) {
  const Json json = std::visit([](const auto& one) { return to_json(one); }, packet);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ZygotePacket packet_from_text(std::string_view text) {
  try {
    return packet_from(Json::parse(text));
  } catch (const Json::exception& error) {
    throw InfrastructureError("zygote: unreadable packet: " + std::string(error.what()));
  }
}

}  // namespace gradcheck
