// The main program of rdma-unit-test with the embedded device among those that it knows. What the device does otherwise than
// a test expects is not here, but in `expected`, as for all suites.
#include "absl/debugging/failure_signal_handler.h"
#include "absl/flags/parse.h"
#include "absl/log/initialize.h"
#include "gtest/gtest.h"
#include "internal/introspection_registrar.h"
#include "public/introspection.h"

namespace rdma_unit_test {

class IntrospectionSoft : public NicIntrospection {
 public:
  IntrospectionSoft(const std::string& name, const ibv_device_attr& attr)
      : NicIntrospection(name, attr) {}
  // It runs on the processors of the test.
  bool IsSlowNic() const override { return true; }
};

}  // namespace rdma_unit_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  absl::InitializeLog();
  absl::InstallFailureSignalHandler({});
  absl::ParseCommandLine(argc, argv);
  rdma_unit_test::IntrospectionRegistrar::GetInstance().Register(
      "soft", [](const std::string& name, const ibv_device_attr& attr) -> rdma_unit_test::NicIntrospection* {
        return new rdma_unit_test::IntrospectionSoft(name, attr);
      });
  return RUN_ALL_TESTS();
}
