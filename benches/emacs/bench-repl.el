;;; bench-repl.el --- Time typing while an answer streams in  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; How long it takes from a key until its character is on the screen of
;; a terminal, in a session of 50,000 tokens, while an answer comes in at
;; 2,000 pieces a second; and, to compare with, while nothing comes in.
;;
;; Three Emacs take part: this one types into a pseudo-terminal and looks
;; for what it typed in what is drawn there; in that terminal runs the
;; one that is measured, with Emacs's own defaults; and a third plays the
;; server, behind a socket.  Each key is a character of its own, so that
;; an older one that is drawn again is not taken for it.
;;
;; And how long an answer of 200 lines takes to be drawn, beside what
;; markdown-mode takes for the same, if it is installed.
;;
;; Prints rows as from-emacs.el does.  By itself: emacs -Q --batch
;; -L elisp -L benches/emacs -l bench-repl -f bench-repl-run, with
;; everything byte-compiled.

;;; Code:

(require 'cl-lib)
(require 'contexture-rpc)

(declare-function bench-quantile "from-emacs" (sorted fraction))
(declare-function bench-row-limit "from-emacs" (measure milliseconds limit))
(declare-function bench-row "from-emacs" (&rest fields))
(declare-function bench-row-faster "from-emacs" (measure ours peer target))
(declare-function gfm-mode "ext:markdown-mode" ())
(declare-function contexture-markdown--begin "contexture-conversation-view" (properties))
(declare-function contexture-markdown--end "contexture-conversation-view" (state))
(declare-function contexture-markdown--insert "contexture-conversation-view" (state text))
(declare-function contexture-connect "contexture-rpc" (address))
(declare-function contexture-conversation "contexture-conversation" (&optional session))
(declare-function contexture-conversation--set-text "contexture-conversation-turn" (text))
(declare-function contexture-conversation-send "contexture-conversation-turn" ())
(defvar contexture-conversation-history-file)
(defvar contexture-conversation-shown-messages)
(defvar contexture-conversation--messages)
(defvar contexture-conversation--turn)

(defconst bench-repl-rate 2000 "How many pieces of the answer come in a second.")

(defconst bench-repl-seconds 12 "For how many seconds the answer comes.")

(defconst bench-repl-messages 200
  "How many messages the session has, each of some 250 tokens.")

;;;; The server

(defun bench-repl-text (number)
  "Return the text of message NUMBER, some 250 tokens."
  (concat (format "## Part %d\n\nIt uses **bold** words, `code`, and a list:\n\n" number)
          (mapconcat (lambda (line)
                       (format "- entry %d says that *something* is the case there\n" line))
                     (number-sequence 1 6) "")
          "\n```elisp\n"
          (mapconcat (lambda (line)
                       (format "(defun part-%d-%d (value)\n  \"Return VALUE.\"\n  (or value %d))\n"
                               number line line))
                     (number-sequence 1 5) "")
          "```\n"))

(defun bench-repl-answer (method)
  "Return the result of METHOD, which a client called."
  (pcase method
    ("initialize" '(:name "contexture" :version "bench"))
    ("list-sessions" '((:session "bench" :id "ses-1" :manager "bench" :messages 200 :tokens 50000)))
    ("open-session"
     '(:session "bench" :id "ses-1" :manager "bench" :messages 200 :tokens 50000))
    ("get-messages"
     (cl-loop for number from 1 to bench-repl-messages collect
              (list :id (format "msg-%d" number)
                    :role (if (cl-oddp number) :user :assistant)
                    :content (bench-repl-text number))))
    ("get-context" '((:id "ctx-1" :tokens 120 :metadata (:filename "/x/main.rs"))))
    ("context-stats" '(:tokens 50000 :limit 100000 :model "bench"))
    ("checkpoint" '(:checkpoint "chk-1"))))

(defun bench-repl-say (client message)
  "Send MESSAGE to CLIENT."
  (process-send-string client (car (contexture--encode message))))

(defun bench-repl-pieces ()
  "Return the answer in pieces."
  (let ((text (mapconcat #'bench-repl-text (number-sequence 1 400) "\n")))
    (cl-loop for from from 0 below (- (length text) 4) by 4
             collect (substring text from (+ from 4)))))

(defun bench-repl-stream (client id)
  "Answer CLIENT's call ID piece by piece."
  (let* ((pieces (bench-repl-pieces)) (start (float-time)) (said 0) (spoken nil) timer)
    (setq timer
          (run-at-time
           0 0.005
           (lambda ()
             (let ((due (* bench-repl-rate (min bench-repl-seconds
                                                (- (float-time) start)))))
               (while (and pieces (< said due))
                 (cl-incf said)
                 (push (car pieces) spoken)
                 (bench-repl-say client `( :method "progress"
                                           :params (:id ,id :kind :text
                                                        :text ,(pop pieces)))))
               (when (or (null pieces) (> (- (float-time) start) bench-repl-seconds))
                 (cancel-timer timer)
                 (bench-repl-say
                  client (list :id id :result
                               (list :id "msg-202" :question "msg-201" :model "bench"
                                     :content (apply #'concat (reverse spoken))))))))))))

(defun bench-repl-hear (client chunk)
  "Answer the lines that CHUNK from CLIENT completes."
  (let ((lines (split-string (concat (process-get client 'rest) chunk) "\n")))
    (process-put client 'rest (car (last lines)))
    (dolist (line (butlast lines))
      (let* ((message (contexture--decode line)) (id (plist-get message :id)))
        (cond ((equal (plist-get message :method) "chat") (bench-repl-stream client id))
              (id (bench-repl-say
                   client (list :id id :result
                                (bench-repl-answer (plist-get message :method))))))))))

(defun bench-repl-serve ()
  "Play the server at the socket that BENCH_SOCKET names, until killed."
  (make-network-process :name "bench" :server t :family 'local :noquery t
                        :service (getenv "BENCH_SOCKET") :coding 'utf-8-unix
                        :filter #'bench-repl-hear)
  (while t (accept-process-output nil 1)))

;;;; The Emacs that is measured

(defun bench-repl-set-up ()
  "Open the session at the socket that BENCH_SOCKET names.
`C-c s' then asks something, and the window's title bar is not needed."
  (require 'contexture-conversation)
  (setq inhibit-startup-screen t
        contexture-conversation-history-file nil
        contexture-conversation-shown-messages nil
        ring-bell-function #'ignore)
  (contexture-connect (getenv "BENCH_SOCKET"))
  (contexture-conversation "bench")
  (delete-other-windows)
  (local-set-key (kbd "C-c s") #'bench-repl-begin)
  (while (not contexture-conversation--messages) (accept-process-output nil 0.01))
  (goto-char (point-max))
  (message "ready")
  (run-with-idle-timer 0.1 nil #'message "%s" "READY"))

(defun bench-repl-begin ()
  "Ask something, whose answer streams in."
  (interactive)
  (contexture-conversation--set-text "Go on")
  (contexture-conversation-send))

;;;; The Emacs that types

(defvar bench-repl-drawn "" "What was drawn and not looked at yet.")

(defun bench-repl-expect (text seconds)
  "Wait until TEXT is drawn, at most SECONDS; return whether it was."
  (let ((end (+ (float-time) seconds)) found)
    (while (not (or (setq found (string-search text bench-repl-drawn))
                    (> (float-time) end)))
      (accept-process-output nil 0.001))
    (setq bench-repl-drawn "")
    found))

(defun bench-repl-terminal (load-path-arguments)
  "Return a pseudo-terminal with the Emacs to be measured.
LOAD-PATH-ARGUMENTS are the arguments that say where its files are."
  (let ((terminal (make-process
                   :name "terminal" :connection-type 'pty :coding 'utf-8-unix
                   :noquery t
                   :command `(,(expand-file-name invocation-name invocation-directory)
                              "-nw" "-Q" ,@load-path-arguments
                              "-l" "bench-repl" "-f" "bench-repl-set-up")
                   :filter (lambda (_ chunk)
                             (setq bench-repl-drawn (concat bench-repl-drawn chunk))))))
    (set-process-window-size terminal 40 100)
    terminal))

(defun bench-repl-type (terminal count number)
  "Type COUNT keys into TERMINAL, from character NUMBER on.
Return the milliseconds until each is drawn, sorted."
  (let (times)
    (dotimes (key count)
      (let* ((character (string (+ number key))) (start (float-time)))
        (process-send-string terminal character)
        (unless (bench-repl-expect character 5)
          (error "Key %d was never drawn" key))
        (push (* 1e3 (- (float-time) start)) times)
        (when (= (% key 20) 19)
          (process-send-string terminal "\C-a\C-k"))
        ;; A fast typist, out of step with everything else.
        (let ((until (+ (float-time) 0.025 (* 0.001 (% (* 7 key) 11)))))
          (while (< (float-time) until) (accept-process-output nil 0.001)))))
    (sort times #'<)))

(defun bench-repl-row (measure times)
  "Print the median and the 99th percentile of TIMES as MEASURE."
  (bench-row-limit (concat measure ", median") (bench-quantile times 0.5) 30)
  (bench-row-limit (concat measure ", 99th percentile") (bench-quantile times 0.99) 30))

;;;; Drawing

(defun bench-repl-times (function)
  "Return how many microseconds FUNCTION takes in each of 15 calls, sorted."
  (funcall function)
  (sort (cl-loop repeat 15
                 do (garbage-collect)
                 collect (let ((start (float-time)))
                           (funcall function)
                           (* 1e6 (- (float-time) start))))
        #'<))

(defun bench-repl-drawing ()
  "Print how long an answer of 200 lines takes, and how long in markdown-mode."
  (require 'contexture-conversation)
  (let* ((lines (split-string (mapconcat #'bench-repl-text (number-sequence 1 20)
                                         "| a | b |\n|---|--:|\n| *c* | 1 |\n")
                              "\n"))
         (text (mapconcat #'identity (seq-take lines 200) "\n"))
         (load-path (append (file-expand-wildcards
                             "/usr/share/emacs/site-lisp/elpa/markdown-mode-*")
                            load-path))
         (hidden (when (require 'markdown-mode nil t)
                   (with-current-buffer (get-buffer-create " *bench markdown*")
                     (setq-local markdown-fontify-code-blocks-natively t)
                     (gfm-mode)
                     (current-buffer)))))
    (bench-row-faster
     "drawing an answer of 200 lines : markdown-mode"
     (bench-repl-times (lambda ()
                         (with-temp-buffer
                           (let ((state (contexture-markdown--begin nil)))
                             (contexture-markdown--insert state text)
                             (contexture-markdown--end state)))))
     (and hidden
          (bench-repl-times (lambda ()
                              (with-current-buffer hidden
                                (erase-buffer)
                                (insert text)
                                (font-lock-ensure)))))
     nil)))

(defun bench-repl-run ()
  "Print how long a key takes while an answer streams in, and while none does."
  (require 'from-emacs)
  (bench-repl-drawing)
  (let* ((folder (make-temp-file "bench-repl" t))
         (socket (expand-file-name "socket" folder))
         (path (cl-loop for directory in (list (file-name-directory
                                                (locate-library "bench-repl"))
                                               (file-name-directory
                                                (locate-library "contexture")))
                        append (list "-L" directory)))
         (process-environment (append (list (concat "BENCH_SOCKET=" socket)
                                            "TERM=xterm" "LC_ALL=C.UTF-8")
                                      process-environment))
         (server (make-process
                  :name "server" :connection-type 'pipe :noquery t
                  :command `(,(expand-file-name invocation-name invocation-directory)
                             "-Q" "--batch" ,@path "-l" "bench-repl"
                             "-f" "bench-repl-serve"))))
    (while (not (file-exists-p socket)) (accept-process-output nil 0.01))
    (let ((terminal (bench-repl-terminal path)))
      (unwind-protect
          (progn
            (unless (bench-repl-expect "READY" 30)
              (error "The session was not opened"))
            (bench-repl-row "key in a chat of 50,000 tokens, nothing streams"
                            (bench-repl-type terminal 150 #x4e00))
            (process-send-string terminal "\C-a\C-k\C-cs")
            (bench-repl-expect "Go on" 5)
            (bench-repl-row "key in a chat of 50,000 tokens, 2,000 pieces/s stream in"
                            (bench-repl-type terminal 300 #x5e00)))
        (delete-process terminal)
        (delete-process server)
        (delete-directory folder t)))))

(provide 'bench-repl)
;;; bench-repl.el ends here
