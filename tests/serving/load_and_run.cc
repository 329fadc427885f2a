// Answers requests as TF Serving does: tensorflow::LoadSavedModel, defaults from the signature, Session::Run.
//
//     load_and_run MODEL REQUEST...
//
// A request is a folder with a file `signature` (its name) and a folder `inputs` of serialized TensorProtos. The
// program adds a folder `outputs` of the same kind, or a file `error`.

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/cc/saved_model/util.h"
#include "tensorflow/core/public/session_options.h"

namespace fs = std::filesystem;

std::string Read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string Answer(const tensorflow::SavedModelBundle& bundle, const fs::path& request) {
  const auto found = bundle.GetSignatures().find(Read(request / "signature"));
  if (found == bundle.GetSignatures().end()) return "no such signature";
  google::protobuf::Map<std::string, tensorflow::TensorProto> protos;
  for (const auto& entry : fs::directory_iterator(request / "inputs")) {
    if (!protos[entry.path().filename().string()].ParseFromString(Read(entry.path()))) return "no TensorProto";
  }
  std::vector<std::pair<std::string, tensorflow::Tensor>> inputs;
  auto status = tensorflow::saved_model::GetInputValues(found->second, protos, inputs);
  if (!status.ok()) return status.ToString();
  std::vector<std::string> aliases, names;
  for (const auto& output : found->second.outputs()) {
    aliases.push_back(output.first);
    names.push_back(output.second.name());
  }
  std::vector<tensorflow::Tensor> outputs;
  status = bundle.GetSession()->Run(inputs, names, {}, &outputs);
  if (!status.ok()) return status.ToString();
  fs::create_directory(request / "outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensorflow::TensorProto proto;
    outputs[i].AsProtoTensorContent(&proto);
    Write(request / "outputs" / aliases[i], proto.SerializeAsString());
  }
  return "";
}

int main(int argc, char** argv) {
  tensorflow::SavedModelBundle bundle;
  const auto status = tensorflow::LoadSavedModel({}, {}, argv[1], {"serve"}, &bundle);
  if (!status.ok()) {
    std::cerr << status.ToString() << std::endl;
    return 1;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string error = Answer(bundle, argv[i]);
    if (!error.empty()) Write(fs::path(argv[i]) / "error", error);
  }
  return 0;
}
