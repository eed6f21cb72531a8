;;; bench-live.el --- Time what live items cost  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The part of `make bench' for items that follow what is typed: what a
;; key costs in a buffer with 200 of them, and for how long a command is
;; held up that sends 50 of them from 20 buffers that all changed.  The
;; rows are those of from-emacs.el.  The environment has CONTEXTURE_BIN
;; and CONTEXTURE_STATE, the beginning of names for files.

;;; Code:

(require 'cl-lib)
(require 'from-emacs)
(require 'contexture)
(require 'contexture-marks)

(defconst bench-live-files (getenv "CONTEXTURE_STATE")
  "Beginning of the names of files.")

(defun bench-live-file (number lines)
  "Visit a new file, called by its NUMBER, that has LINES; return its buffer."
  (let ((file (format "%s-live-%d" bench-live-files number)))
    (write-region (mapconcat (lambda (line) (format "line %d of file %d\n" line number))
                             (number-sequence 1 lines) "")
                  nil file nil 'silent)
    (with-current-buffer (find-file-noselect file)
      (buffer-enable-undo)
      (current-buffer))))

(defun bench-live-add (buffer first last)
  "Add the lines from FIRST to LAST of BUFFER."
  (with-current-buffer buffer
    (save-excursion
      (contexture-add-region (contexture--line-position first)
                             (contexture--line-position (1+ last))))))

(defun bench-live-followed ()
  "Return the number of items that have a place in a buffer."
  (cl-loop for buffer in contexture-live--buffers
           when (buffer-live-p buffer)
           sum (length (buffer-local-value 'contexture-live--items buffer))))

(defun bench-live-settle (count)
  "Wait until COUNT items have a place in buffers."
  (with-timeout (30 (error "Only %d items follow their buffers"
                           (bench-live-followed)))
    (while (not (and (= count (bench-live-followed))
                     (zerop (hash-table-count (oref contexture--connection unanswered)))))
      (accept-process-output nil 0.01))))

;;; A key

(defun bench-live-key-times (count)
  "The microseconds of COUNT keys within lines and at their ends, sorted.
Each is followed by a deletion, and the time is that of one of both."
  (garbage-collect)
  (sort (cl-loop for number below count
                 do (goto-char (point-min))
                 (forward-line (% (* 7 number) 1000))
                 collect (/ (bench-microseconds
                             (lambda () (insert "x") (delete-char -1)))
                            2))
        #'<))

(defun bench-live-keys ()
  "Print what 200 items add to a key."
  (let ((buffer (bench-live-file 0 1000)))
    (with-current-buffer buffer
      (let ((bare (bench-live-key-times 4000)))
        (dotimes (number 200)
          (bench-live-add buffer (+ 1 (* 5 number)) (+ 3 (* 5 number))))
        (bench-live-settle 200)
        (let* ((with (bench-live-key-times 4000))
               (cost (- (bench-quantile with 0.99) (bench-quantile bare 0.99))))
          (bench-row "200 live items, what they add to a key, 99th percentile"
                     (format "%.1f us" cost)
                     (format "%.1f us without" (bench-quantile bare 0.99))
                     (format "%.2f" (/ cost 10)) "<= 1, of 10 us"
                     (bench-verdict (<= cost 10)))))
      (contexture-request 'remove-items
                          (list :manager (contexture-adding-context) :all t))
      (set-buffer-modified-p nil)
      (kill-buffer buffer))))

;;; A send

(defun bench-live-send-times (buffers count)
  "The milliseconds for which a send is held up, COUNT times, sorted.
Before each, all BUFFERS change."
  (sort (cl-loop for number below count
                 do (dolist (buffer buffers)
                      (with-current-buffer buffer
                        (goto-char (point-min))
                        (insert (format "%d\n" number))
                        (contexture--line-position 4)
                        (insert "x")))
                 (garbage-collect)
                 collect (/ (bench-microseconds #'contexture-live--push) 1e3)
                 do (contexture-request 'ping))
        #'<))

(defun bench-live-send ()
  "Print how long it takes to tell of 50 items in 20 changed buffers."
  (let ((buffers (cl-loop for number from 1 to 20 collect (bench-live-file number 300))))
    (dotimes (number 50)
      (let ((first (+ 2 (* 100 (/ number 20)))))
        (bench-live-add (nth (% number 20) buffers) first (+ first 39))))
    (bench-live-settle 50)
    (bench-row-limit "before a send, 50 live items in 20 changed buffers, 99th percentile"
                     (bench-quantile (bench-live-send-times buffers 100) 0.99) 15)))

(defun bench-live-run ()
  "Run all and print the rows."
  (let ((contexture-server-command (list (getenv "CONTEXTURE_BIN")))
        (contexture-server-args '("--ephemeral"))
        (contexture-add-to #'buffer-name)
        (inhibit-message t))
    (setenv "CONTEXTURE_STATE")         ; the server takes one or the other
    (contexture-request 'ping)
    (contexture-request 'configure-manager
                        (list :max-items 1000
                              :manager (concat (file-name-nondirectory bench-live-files)
                                               "-live-0")))
    (bench-live-keys)
    (bench-live-send)
    (contexture-disconnect)))

(provide 'bench-live)
;;; bench-live.el ends here
