;;; bench-batch.el --- Time many adds in one batch  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Times 100 adds in one batch against 100 calls one after the other,
;; from Emacs with the package's own client, on a server that stores
;; them.  The two take turns in rounds.  The rows are those of
;; from-emacs.el.  Run it with the package and this folder on `load-path':
;;
;;   CONTEXTURE_BIN=contexture CONTEXTURE_STATE=/tmp/state \
;;     emacs --batch -Q -L elisp -L benches/emacs -l bench-batch -f bench-batch-run

;;; Code:

(require 'cl-lib)
(require 'from-emacs)
(require 'contexture-rpc)

(defconst bench-batch-size 100
  "Number of adds in a round.")

(defconst bench-batch-rounds 40
  "Number of rounds.")

(defun bench-batch-params (round n)
  "Return the parameters of add N in ROUND, of about 100 bytes."
  (list :manager (format "batch-%d" (% round 2)) :brief t
        :content (format "(defun add-%d-%d ()\n  \"%s\")" round n (make-string 70 ?x))))

(defun bench-batch-one-by-one (round)
  "Make the adds of ROUND one after the other."
  (dotimes (n bench-batch-size)
    (contexture-request 'add-context (bench-batch-params round n))))

(defun bench-batch-at-once (round atomic)
  "Make the adds of ROUND in one batch, all or nothing if ATOMIC."
  (let ((outcomes (contexture-request-batch
                   (cl-loop for n below bench-batch-size
                            collect (cons 'add-context (bench-batch-params round n)))
                   atomic)))
    (unless (and (= (length outcomes) bench-batch-size)
                 (cl-every (lambda (outcome) (plist-get outcome :result)) outcomes))
      (error "A batch failed: %S" (car outcomes)))))

(defun bench-batch-run ()
  "Print how much faster a batch is.
Which of the three comes first changes from round to round, since each
may leave work to the next."
  (let ((contexture-server-command (getenv "CONTEXTURE_BIN"))
        (contexture-server-args (list "--state" (getenv "CONTEXTURE_STATE")))
        (ways (list (list 'alone #'bench-batch-one-by-one)
                    (list 'each #'bench-batch-at-once nil)
                    (list 'atomic #'bench-batch-at-once t)))
        times)
    (contexture-request 'ping)
    (dotimes (round bench-batch-rounds)
      (pcase-dolist (`(,name ,way . ,more) ways)
        (garbage-collect)
        (push (apply #'bench-microseconds way round more) (alist-get name times)))
      (setq ways (append (cdr ways) (list (car ways)))))
    (cl-flet ((sorted (name) (sort (copy-sequence (alist-get name times)) #'<)))
      (bench-row-faster "100 adds in a batch, each for itself" (sorted 'each) (sorted 'alone) 5)
      (bench-row-faster "100 adds in a batch, all or nothing" (sorted 'atomic) (sorted 'alone) 5))))

(provide 'bench-batch)
;;; bench-batch.el ends here
