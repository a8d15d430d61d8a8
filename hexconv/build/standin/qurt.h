/* A stand-in: what of QuRT a platform calls, as its user guide documents it. */
#ifndef QURT_H
#define QURT_H
typedef unsigned int qurt_thread_t;
typedef struct {
    void *stack;
    unsigned int stack_bytes;
} qurt_thread_attr_t;
typedef struct {
    unsigned long long whatever[8];
} qurt_mutex_t;
typedef enum { QURT_HVX_MODE_64B = 0, QURT_HVX_MODE_128B = 1 } qurt_hvx_mode_t;
enum { QURT_EOK = 0, QURT_EINVALID = 4 };
void qurt_thread_attr_init(qurt_thread_attr_t *attr);
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, char *name);
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr);
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size);
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority);
int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entrypoint)(void *), void *arg);
int qurt_thread_join(unsigned int tid, int *status);
void qurt_thread_exit(int status);
qurt_thread_t qurt_thread_get_id(void);
int qurt_thread_get_priority(qurt_thread_t threadid);
void qurt_mutex_init(qurt_mutex_t *lock);
void qurt_mutex_destroy(qurt_mutex_t *lock);
void qurt_mutex_lock(qurt_mutex_t *lock);
void qurt_mutex_unlock(qurt_mutex_t *lock);
int qurt_hvx_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_unlock(void);
#endif
