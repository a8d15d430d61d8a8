/* A stand-in: VTCM and the matrix engine from the compute resource manager, in its cached mode. */
#ifndef HAP_COMPUTE_RES_H
#define HAP_COMPUTE_RES_H
typedef struct {
    unsigned long long attributes[8];
} compute_res_attr_t;
typedef struct {
    unsigned int block_size, page_list_len;
} compute_res_vtcm_page_t;
/* Functions of attributes return 0 where they hold. */
int HAP_compute_res_query_VTCM(unsigned int application, unsigned int *total_bytes, compute_res_vtcm_page_t *total_pages,
                               unsigned int *free_bytes, compute_res_vtcm_page_t *free_pages);
int HAP_compute_res_attr_init(compute_res_attr_t *attributes);
int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attributes, unsigned int bytes, unsigned int least_page_bytes,
                                           unsigned int least_bytes);
int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attributes, unsigned char on);
int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attributes, int (*asked)(unsigned int resource, void *user), void *user);
int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attributes, unsigned char on);
/* The resource, or 0 if it was not to be had in time. */
unsigned int HAP_compute_res_acquire(compute_res_attr_t *attributes, unsigned int microseconds);
int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attributes, void **address, unsigned int *bytes);
int HAP_compute_res_acquire_cached(unsigned int resource, unsigned int microseconds);
int HAP_compute_res_release_cached(unsigned int resource);
int HAP_compute_res_release(unsigned int resource);
int HAP_compute_res_hmx_lock(unsigned int resource);
int HAP_compute_res_hmx_unlock(unsigned int resource);
#endif
