hone_test(test_padding test_padding.c ../net.c)
hone_test(test_packed test_packed.c ../net.c)
hone_test(test_dynamic_shapes test_dynamic_shapes.c ../net.c)
hone_ctest(plan_command sh tests/shapes/plan_command.sh $<TARGET_FILE:hone_cli>)
