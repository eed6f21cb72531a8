;;; from-emacs.el --- Time contexture from Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' that a user of Emacs feels: how long an add
;; takes, and for how long Emacs is blocked while the server walks a
;; tree.
;;
;; The add is timed on four contestants: contexture over stdio, a
;; server over the same transport that only echoes, both called by the
;; package's own client, a function in an SBCL image that is called
;; through SLIME and Swank, and contexture called through SLIME in the
;; same way.  They take turns in short rounds, so that whatever else the
;; machine does hits all of them alike.
;;
;; Prints rows of tab-separated fields: measure, ours, peer or limit,
;; ratio, target, verdict.  The environment names the contestants:
;; CONTEXTURE_BIN with CONTEXTURE_STATE, ECHO_BINARY, SWANK_PORT and
;; CONTEXTURE_PORT; one that is not named does not take part.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)

(declare-function slime-connect "slime")
(declare-function slime-connected-p "slime")
(declare-function slime-connection "slime")
(declare-function slime-eval "slime")
(defvar slime-dispatching-connection)
(defvar slime-log-events)
(defvar slime-net-processes)
(defvar slime-protocol-version)
(defvar slime-setup-contribs)

;; Equal for all, and what a package for speed sets anyway: no
;; collection falls into a call, large replies come in few pieces, and
;; nobody waits for a piece to grow.
(setq gc-cons-threshold (* 100 1000 1000)
      read-process-output-max (* 1024 1024)
      process-adaptive-read-buffering nil)

;;; Rows

(defun bench-row (&rest fields)
  "Print FIELDS as a row."
  (princ (concat (mapconcat (lambda (field) (format "%s" field)) fields "\t")
                 "\n")))

(defun bench-verdict (met)
  "The last field of a row whose target is MET or not."
  (if met "yes" "NO"))

(defun bench-quantile (sorted fraction)
  "The value in SORTED below which FRACTION of the values are."
  (nth (min (1- (length sorted)) (floor (* fraction (length sorted)))) sorted))

(defun bench-show-times (sorted)
  "The median and 99th percentile of SORTED, microseconds, for people."
  (format "%.0f / %.0f us"
          (bench-quantile sorted 0.5) (bench-quantile sorted 0.99)))

(defun bench-row-faster (measure ours peer target)
  "Print that OURS is some times faster than PEER in MEASURE.
Both are sorted times, nil when they did not take part.  TARGET is the
factor to reach, or nil when there is none."
  (when (and ours peer)
    (let ((factor (/ (bench-quantile peer 0.5) (bench-quantile ours 0.5))))
      (bench-row measure (bench-show-times ours) (bench-show-times peer)
                 (format "%.2f x faster" factor)
                 (if target (format ">= %s x" target) "-")
                 (if target (bench-verdict (>= factor target)) "-")))))

(defun bench-row-within (measure ours peer target)
  "Print that OURS takes some times the time of PEER in MEASURE.
Like `bench-row-faster', but TARGET is the factor not to exceed."
  (when (and ours peer)
    (let ((factor (/ (bench-quantile ours 0.5) (bench-quantile peer 0.5))))
      (bench-row measure (bench-show-times ours) (bench-show-times peer)
                 (format "%.2f x the time" factor)
                 (if target (format "<= %s x" target) "-")
                 (if target (bench-verdict (<= factor target)) "-")))))

(defun bench-row-limit (measure milliseconds limit)
  "Print MILLISECONDS, what MEASURE took, beside its LIMIT."
  (bench-row measure (format "%.1f ms" milliseconds) (format "%d ms" limit)
             (format "%.2f" (/ milliseconds (float limit))) "<= 1"
             (bench-verdict (<= milliseconds limit))))

;;; The contestants: alists of a name and a function that adds a text,
;;; and replies briefly, without that text, if its second argument says so

(defun bench-connection (program &rest args)
  "A connection of the package's client to PROGRAM with further ARGS."
  (let ((contexture--connection nil)
        (contexture-server-command (list program))
        (contexture-server-args args))
    (contexture-current-connection)))

(defun bench-call (connection method params)
  "Call METHOD with PARAMS on CONNECTION as a command of the package does."
  (let ((contexture--connection connection))
    (contexture-request method params :timeout 60)))

(defun bench-line-contestant (name connection)
  "The contestant NAME, a server at CONNECTION."
  (cons name
        (lambda (text brief)
          (bench-call connection 'add-context
                      `( :manager "bench" :content ,text :type :code
                         :metadata (:filename "bench.lisp")
                         ,@(and brief '(:brief t)))))))

(defun bench-slime-connection (port)
  "A connection of SLIME's to PORT."
  (require 'slime)
  (setq slime-log-events nil
        slime-setup-contribs nil
        slime-protocol-version 'ignore)
  (let ((others slime-net-processes)
        (process (slime-connect "127.0.0.1" port)))
    (with-timeout (20 (error "Swank on port %d does not answer" port))
      (while (let ((slime-dispatching-connection process))
               (or (memq process others) (not (slime-connected-p))))
        (accept-process-output nil 0.05)))
    process))

(defun bench-slime-contestant (name port form)
  "The contestant NAME, called through SLIME on PORT.
FORM makes the form to evaluate of the text and whether to be brief."
  (let ((connection (bench-slime-connection port)))
    (cons name
          (lambda (text brief)
            (let ((slime-dispatching-connection connection))
              (slime-eval (funcall form text brief)))))))

(defun bench-swank-form (text brief)
  "What adds TEXT in an image, with a BRIEF reply or a full one."
  `(cl-user::bench-add ,text ,brief))

(defun bench-our-form (text brief)
  "What adds TEXT on our side of SLIME, with a BRIEF reply or a full one."
  `(contexture:add-context :manager "bench" :content ,text :type :code
                           :metadata '(:filename "bench.lisp")
                           ,@(and brief '(:brief t))))

(defun bench-contestants (ours)
  "The contestants that the environment names, with OURS, a connection or nil."
  (let ((echo (getenv "ECHO_BINARY"))
        (port (getenv "SWANK_PORT"))
        (our-port (getenv "CONTEXTURE_PORT")))
    (delq nil
          (list (and ours (bench-line-contestant "ours" ours))
                (and echo (bench-line-contestant "echo" (bench-connection echo)))
                (and port (bench-slime-contestant "swank" (string-to-number port)
                                                  #'bench-swank-form))
                (and our-port (bench-slime-contestant "slime" (string-to-number our-port)
                                                      #'bench-our-form))))))

;;; Adding

(defun bench-text (bytes)
  "Lisp code of exactly BYTES bytes, with the newlines and quotes of code."
  (let ((line "(defun sum (a b) \"Add A and B.\"\n  (+ a b)) ; sums\n"))
    (substring (apply #'concat (make-list (1+ (/ bytes (length line))) line))
               0 bytes)))

(defun bench-microseconds (function &rest args)
  "How many microseconds it takes to apply FUNCTION to ARGS."
  (let ((start (current-time)))
    (apply function args)
    (* 1e6 (float-time (time-subtract nil start)))))

(defun bench-rounds (contestants text brief rounds calls)
  "Let CONTESTANTS add TEXT, CALLS times each in every one of ROUNDS.
Return an alist of names and sorted microseconds.  The first call of a
turn wakes the other process up and is not counted.  BRIEF asks for
replies without the content."
  (let ((samples (mapcar (lambda (one) (list (car one))) contestants)))
    (dotimes (_ rounds)
      (pcase-dolist (`(,name . ,add) contestants)
        (garbage-collect)
        (funcall add text brief)
        (dotimes (_ calls)
          (push (bench-microseconds add text brief)
                (cdr (assoc name samples))))))
    (mapcar (lambda (one) (cons (car one) (sort (cdr one) #'<))) samples)))

(defun bench-add (contestants name bytes rounds calls targets)
  "Compare how CONTESTANTS add NAME, a text of BYTES, in ROUNDS of CALLS.
TARGETS has the factors to reach: against Swank with brief replies and
with full ones, and against the echo, whose reply is always brief."
  (dolist (brief '(t nil))
    (let* ((times (bench-rounds contestants (bench-text bytes) brief rounds calls))
           (ours (cdr (assoc "ours" times)))
           (measure (format "durable add of %s, %s reply : "
                            name (if brief "brief" "full"))))
      (pcase-dolist (`(,who . ,sorted) times)
        (message "%s%s %s, n = %d" measure who (bench-show-times sorted)
                 (length sorted)))
      (bench-row-faster (concat measure "Swank") ours (cdr (assoc "swank" times))
                        (plist-get targets (if brief :brief :full)))
      (bench-row-faster (concat measure "by slime-eval, Swank")
                        (cdr (assoc "slime" times)) (cdr (assoc "swank" times))
                        ;; Larger texts cost Emacs itself the same on both sides.
                        (and (<= bytes 10000) (plist-get targets (if brief :brief :full))))
      (when brief
        (bench-row-within (concat measure "echo") ours (cdr (assoc "echo" times))
                          (plist-get targets :echo))))))

;;; Walking a tree

(defun bench-make-tree (directory files)
  "Write FILES small files below DIRECTORY, a hundred in each folder."
  (dotimes (number files)
    (let ((folder (format "%s/folder-%d" directory (/ number 100))))
      (make-directory folder t)
      (write-region (bench-text 200) nil (format "%s/file-%d.lisp" folder number)
                    nil 'silent))))

(defun bench-with-ticks (function)
  "Call FUNCTION and return for how long Emacs was blocked, in seconds.
A timer that is due every millisecond tells when Emacs did not get to
do anything else."
  (garbage-collect)
  (let* ((last (float-time))
         (longest 0)
         (tick (lambda ()
                 (setq longest (max longest (- (float-time) last))
                       last (float-time))))
         (timer (run-at-time 0 0.001 tick)))
    (unwind-protect (funcall function)
      (funcall tick)
      (cancel-timer timer))
    longest))

(defun bench-list-tree (connection directory)
  "Have the server at CONNECTION list DIRECTORY; return its answer."
  (let ((contexture--connection connection)
        (result nil))
    (contexture-request-async
     'add-tree (list :manager "tree" :path directory :mode :listing)
     :success (lambda (item) (setq result item))
     :error (lambda (problem) (setq result problem)))
    (while (not result)
      (accept-process-output nil 0.01))
    (unless (eql 4000 (plist-get result :files))
      (error "The tree was not listed: %S" result))
    result))

(defun bench-tree (connection directory)
  "Time the listing of 4,000 files below DIRECTORY, asked for at CONNECTION."
  (bench-make-tree directory 4000)
  (let* ((start (float-time))
         (longest (bench-with-ticks
                   (lambda () (bench-list-tree connection directory)))))
    (bench-row-limit "listing of 4,000 files with add-tree"
                     (* 1e3 (- (float-time) start)) 1000)
    (bench-row-limit "longest block of Emacs meanwhile" (* 1e3 longest) 50)))

;;; All of it

(defun bench-run ()
  "Run all and print the rows."
  (let* ((binary (getenv "CONTEXTURE_BIN"))
         (state (getenv "CONTEXTURE_STATE"))
         (ours (and binary (bench-connection binary "--state" state)))
         (contestants (bench-contestants ours)))
    (bench-add contestants "100 B" 100 20 100 '(:brief 2 :full 2 :echo 1.5))
    (bench-add contestants "10 KB" 10000 10 20 '(:full 50))
    (bench-add contestants "1 MB" 1000000 8 3 '(:brief 3 :full 3))
    (when ours
      (bench-tree ours (concat state "-tree")))))

(provide 'from-emacs)
;;; from-emacs.el ends here
