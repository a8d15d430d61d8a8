/* Of the compute resource manager's header, what hexconv_qurt.c calls: enough to compile, nothing to run. */
#pragma once
typedef struct {
    unsigned char whatever[256];
} compute_res_attr_t;
int HAP_compute_res_attr_init(compute_res_attr_t *attr);
int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int size, unsigned char b_single_page);
void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr);
unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us);
int HAP_compute_res_release(unsigned int context_id);
