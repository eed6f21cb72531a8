;;; contexture-sources-tests.el --- Tests of what else can be added  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'contexture-test-helper)
(require 'compile)
(require 'dired)
(require 'flymake)
(require 'grep)
(require 'ibuffer)
(require 'contexture-menu)
(require 'contexture-list)
(require 'contexture-sources)

(defmacro contexture-test-choosing (choice &rest body)
  "Run BODY with every completion answered by CHOICE.
If CHOICE is a function it is called with the candidates and the table."
  (declare (indent 1) (debug t))
  `(let ((choice ,choice))
     (cl-letf (((symbol-function 'completing-read)
                (lambda (_prompt table &rest _)
                  (if (functionp choice)
                      (funcall choice (all-completions "" table) table)
                    choice))))
       ,@body)))

(defun contexture-test-annotation (name table)
  "Return the annotation and category that TABLE has for NAME."
  (let ((metadata (completion-metadata "" table nil)))
    (list (string-trim (funcall (completion-metadata-get
                                 metadata 'annotation-function)
                                name))
          (completion-metadata-get metadata 'category))))

(defun contexture-test-contents (&optional manager)
  "Return the texts of MANAGER's items."
  (mapcar (lambda (item) (plist-get item :content)) (contexture-test-items manager)))

;;;; What is most likely meant

(ert-deftest contexture-sources-dwim-takes-the-active-region ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(defun f ()" "  1)" ";; c")
      (transient-mark-mode 1)
      (push-mark (point-min) t t)
      (goto-char 12)
      (contexture-test-message "^Added a.el:1 \\|^Added .*a.el:1 "
        (contexture-add-dwim))
      (should (equal (contexture-test-contents) '("(defun f ()"))))))

(ert-deftest contexture-sources-dwim-takes-the-definition ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(defun f ()" "  1)" "" ";; c")
      (goto-char 3)
      (contexture-test-message "^Added" (contexture-add-dwim))
      (should (equal (contexture-test-metadata (contexture-test-only-item)
                                               :origin :symbol)
                     '(:defun "f"))))))

(ert-deftest contexture-sources-dwim-takes-the-buffer ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "(one)" "two")
      (goto-char 2)
      (contexture-test-message "^Added" (contexture-add-dwim))
      (should (equal (contexture-test-contents) '("(one)\ntwo\n"))))))

(ert-deftest contexture-sources-dwim-takes-marked-files-of-dired ()
  (contexture-test-with-server
    (contexture-test-file "a.txt" "a")
    (contexture-test-file "b.txt" "b")
    (contexture-test-file "c.txt" "c")
    (write-region "\0\1\2" nil (concat llm-ert-directory "d.bin") nil 'silent)
    (with-current-buffer (dired-noselect llm-ert-directory)
      (dired-mark-files-regexp "[abd]\\.")
      (let ((message (contexture-test-message "^Added" (contexture-add-dwim))))
        (should (string-match-p "Added 2 files (4 tokens) to .*(2 items, [0-9]+ tokens); \
left out 1 binary (d.bin)" message)))
      (should (equal (contexture-test-contents) '("a\n" "b\n"))))))

(ert-deftest contexture-sources-undo-takes-back-what-one-command-added ()
  (contexture-test-with-server
    (dolist (name '("a.txt" "b.txt" "c.txt")) (contexture-test-file name name))
    (with-current-buffer (dired-noselect llm-ert-directory)
      (let ((names (lambda ()
                     (mapcar (lambda (item)
                               (file-name-nondirectory
                                (car (contexture-test-metadata item :filename))))
                             (contexture-test-items)))))
        (contexture-test-message "^Added .*c\\.txt"
          (contexture-add-file (expand-file-name "c.txt")))
        (dired-mark-files-regexp "[ab]\\.")
        (contexture-test-message "^Added 2 files" (contexture-add-dwim))
        (contexture-menu--fetch)
        (should (equal (contexture-menu--undo) "undo: an addition of 2 items"))
        (contexture-test-message "^Undid an addition of 2 items in .* (1 item, [0-9]+ tokens)"
          (contexture-undo))
        (should (equal (funcall names) '("c.txt")))
        (contexture-menu--fetch)
        (should (equal (contexture-menu--redo) "redo: an addition of 2 items"))
        (contexture-test-message "^Redid an addition of 2 items in .* (3 items"
          (contexture-redo))
        (should (equal (funcall names) '("c.txt" "a.txt" "b.txt")))
        (contexture-undo)
        (contexture-test-message "^Undid an addition of .*c\\.txt" (contexture-undo))
        (should-not (funcall names))
        ;; An item that is added again no longer belongs to the others.
        (contexture-test-message "^Redid an addition of .*c\\.txt" (contexture-redo))
        (contexture-test-message "^Redid an addition of 2 items" (contexture-redo))
        (contexture-test-message "^Added .*b\\.txt"
          (contexture-add-file (expand-file-name "b.txt")))
        (contexture-test-message "^Undid an addition of .*b\\.txt" (contexture-undo))
        (should (equal (funcall names) '("c.txt" "a.txt" "b.txt")))))))

(ert-deftest contexture-sources-dwim-takes-the-file-at-point-of-dired ()
  (contexture-test-with-server
    (contexture-test-file "a.txt" "a")
    (contexture-test-file "b.txt" "b")
    (with-current-buffer (dired-noselect llm-ert-directory)
      (dired-goto-file (expand-file-name "b.txt"))
      (contexture-test-message "^Added .*b.txt to" (contexture-add-dwim))
      (should (equal (contexture-test-contents) '("b\n")))
      (goto-char (point-min))
      (contexture-test-user-error "put point on one" (contexture-add-dwim)))))

(ert-deftest contexture-sources-dwim-takes-directories-of-dired ()
  (contexture-test-with-server
    (contexture-test-file "sub/a.txt" "a")
    (with-current-buffer (dired-noselect llm-ert-directory)
      (dired-goto-file (expand-file-name "sub"))
      (contexture-test-choosing "listing"
        (contexture-test-message "^Added a listing of 1 file of .*sub/ "
          (contexture-add-dwim))))))

(ert-deftest contexture-sources-dwim-takes-marked-buffers-of-ibuffer ()
  (contexture-test-with-server
    (dolist (name '("one" "two" "three"))
      (with-current-buffer (get-buffer-create name) (insert name)))
    (save-window-excursion
      (ibuffer nil "*ibuffer test*")
      (with-current-buffer "*ibuffer test*"
        (ibuffer-mark-by-name-regexp "\\`t\\(wo\\|hree\\)\\'")
        (contexture-test-message "^Added 2 buffers to" (contexture-add-dwim))
        (should (equal (sort (contexture-test-contents) #'string<)
                       '("three" "two")))))))

;;;; Trees

(defun contexture-test-tree ()
  "Make a small project and return its root."
  (contexture-test-file "p/.git/HEAD" "ref: refs/heads/main")
  (contexture-test-file "p/.gitignore" "ignored.txt")
  (contexture-test-file "p/ignored.txt" "no")
  (contexture-test-file "p/a.txt" "alpha")
  (contexture-test-file "p/sub/b.txt" "beta")
  (write-region "\0\1\2" nil (concat llm-ert-directory "p/c.bin") nil 'silent)
  (concat llm-ert-directory "p/"))

(ert-deftest contexture-tree-adds-files-and-tells-what-was-left-out ()
  (contexture-test-with-server
    (let ((message (contexture-test-message "^Added"
                     (contexture-add-directory (contexture-test-tree)))))
      (should (string-match-p
               (concat "Added 2 files of .*/p/ (4 tokens) to .*(2 items, 4 tokens); "
                       "left out 1 ignored (ignored.txt), 1 hidden (.gitignore), "
                       "1 binary (c.bin); \\+ adds .gitignore, ignored.txt\\'")
               message)))
    (should (equal (sort (contexture-test-contents) #'string<)
                   '("alpha\n" "beta\n")))))

(ert-deftest contexture-tree-takes-hidden-files-on-request ()
  (contexture-test-with-server
    (contexture-test-message "^Added 3 files"
      (contexture-add-directory (contexture-test-tree) 'files t))))

(ert-deftest contexture-tree-adds-a-listing ()
  (contexture-test-with-server
    (contexture-test-message "^Added a listing of 2 files of .*(1 item,"
      (contexture-add-directory (contexture-test-tree) 'listing))
    (should (equal (contexture-test-metadata (contexture-test-only-item) :origin)
                   '(:listing)))))

(ert-deftest contexture-tree-adds-the-project ()
  (contexture-test-with-server
    (let ((file (concat (contexture-test-tree) "sub/b.txt")))
      (contexture-test-visiting file
        (contexture-test-choosing "files"
          (contexture-test-message "^Added 2 files of .*/p/ .* to buffer b.txt"
            (call-interactively #'contexture-add-project)))))))

(ert-deftest contexture-tree-includes-unsaved-edits-or-says-that-it-does-not ()
  (contexture-test-with-server
    (let ((root (contexture-test-tree)))
      (contexture-test-visiting (concat root "a.txt")
        (insert "more ")
        (contexture-test-message "unsaved edits of 1 file are not included"
          (contexture-add-directory root 'listing))
        (contexture-test-message "^Added 2 files" (contexture-add-directory root))
        (llm-ert-wait-for contexture-live--items)
        (should (member "more alpha\n" (contexture-test-contents)))))))

;;;; What must not be sent, and what is sent in another form

(defmacro contexture-test-answering (answer asked &rest body)
  "Run BODY with ANSWER to each question, which is pushed to the variable ASKED."
  (declare (indent 2) (debug t))
  `(cl-letf (((symbol-function 'y-or-n-p)
              (lambda (prompt) (push prompt ,asked) ,answer)))
     ,@body))

(defun contexture-test-names ()
  "Return the names of the files of all items."
  (mapcar (lambda (item)
            (file-name-nondirectory (car (contexture-test-metadata item :filename))))
          (contexture-test-items)))

(ert-deftest contexture-sources-marks-of-dired-pass-the-filter ()
  (contexture-test-with-server
    (make-directory (concat llm-ert-directory ".git"))
    (contexture-test-file ".gitignore" "*.log")
    (dolist (name '("a.txt" "b.log" ".hidden" "c.txt~" ".env" "deep/d.log" "deep/e.txt"))
      (contexture-test-file name name))
    (with-current-buffer (dired-noselect llm-ert-directory "-la")
      (dired-mark-files-regexp "^\\(a\\.txt\\|b\\.log\\|\\.hidden\\|c\\.txt~\\|\\.env\\|deep\\)$")
      (let (asked)
        (contexture-test-choosing "files"
          (contexture-test-answering nil asked
            (should (string-match-p
                     "left out 1 ignored (deep/d\\.log), 1 backup (c\\.txt~); \\+ adds"
                     (contexture-test-message "^Added 4 files" (contexture-add-dwim))))))
        (should (equal asked '(".env may hold passwords, keys or tokens.  Send it to models? ")))
        (should (equal (sort (contexture-test-names) #'string<)
                       '(".hidden" "a.txt" "b.log" "e.txt")))
        ;; The key that the message names adds what was left out.
        (contexture-test-message "^Added 1 file"
          (call-interactively (key-binding "+")))
        (contexture-test-message "^Undid" (contexture-undo))
        (contexture-test-message "^Undid" (contexture-undo))
        (should-not (contexture-test-items))
        (contexture-test-choosing "files"
          (contexture-test-answering t asked
            (contexture-test-message "^Added 5 files" (contexture-add-dwim))))
        (should (member ".env" (contexture-test-names)))))))

(ert-deftest contexture-sources-many-marks-of-dired-are-one-addition ()
  (contexture-test-with-state
    (let ((contexture-add-to 'shared))
      (contexture-request 'configure-manager (list :manager contexture--shared :max-items 1000))
      (dotimes (n 230) (contexture-test-file (format "f%03d.txt" n) "x"))
      (with-current-buffer (dired-noselect llm-ert-directory)
        (dired-mark-files-regexp "\\.txt")
        (contexture-test-message "^Added 230 files" (contexture-add-dwim))
        (should (= 230 (length (contexture-test-items))))
        (contexture-disconnect)
        (contexture-test-message "^Undid an addition of 230 items" (contexture-undo))
        (should-not (contexture-test-items))
        (contexture-test-message "^Redid an addition of 230 items" (contexture-redo))
        (should (= 230 (length (contexture-test-items))))))))

(ert-deftest contexture-sources-a-batch-of-another-client-is-one-addition ()
  (contexture-test-with-server
    (contexture-request
     'batch (list :calls (vconcat
                          (mapcar (lambda (text)
                                    (list :method "add-context"
                                          :params (list :manager (contexture-adding-context)
                                                        :content text)))
                                  '("one" "two" "three")))))
    (contexture-test-message "^Undid an addition of 3 items" (contexture-undo))
    (should-not (contexture-test-items))))

(ert-deftest contexture-sources-secrets-are-asked-about-by-name ()
  (contexture-test-with-server
    (let ((file (contexture-test-file ".env" "KEY=1"))
          (key (contexture-test-file "notes.txt" "-----BEGIN OPENSSH \
PRIVATE KEY-----" "abc"))
          asked)
      (contexture-test-answering nil asked
        (contexture-test-user-error "\\.env may hold secrets" (contexture-add-file file))
        (contexture-test-visiting file
          (contexture-test-user-error "\\.env may hold secrets" (contexture-add-buffer)))
        (contexture-test-message "^Nothing added to .*It may hold secrets"
          (contexture-add-file key)))
      (should (= 3 (length asked)))
      (should (string-match-p "^notes.txt" (car asked)))
      (should-not (contexture-test-items))
      (contexture-test-answering t asked
        (contexture-test-message "^Added .*\\.env" (contexture-add-file file))
        (contexture-test-message "^Added .*notes" (contexture-add-file key)))
      (should (= 5 (length asked)))
      (should (equal (contexture-test-names) '(".env" "notes.txt"))))))

(ert-deftest contexture-sources-several-secrets-are-asked-about-once ()
  (contexture-test-with-server
    (let (buffers asked)
      (dolist (name '(".env" "a.txt" "id_rsa"))
        (push (find-file-noselect (contexture-test-file name name)) buffers))
      (cl-letf (((symbol-function 'ibuffer-get-marked-buffers) (lambda () (reverse buffers))))
        (contexture-test-answering nil asked
          (contexture-test-message
              "^Added 1 buffer .*2 not added: \\.env may hold secrets, id_rsa may hold secrets"
            (with-temp-buffer (setq major-mode 'ibuffer-mode) (contexture-add-dwim))))
        (should (equal 1 (length asked)))
        (should (string-prefix-p ".env, id_rsa may hold" (car asked)))
        (contexture-test-answering t asked
          (contexture-test-message "^Added 3 buffers"
            (with-temp-buffer (setq major-mode 'ibuffer-mode) (contexture-add-dwim)))))
      (mapc #'kill-buffer buffers))))

(ert-deftest contexture-sources-names-of-secrets-are-those-of-the-server ()
  (with-temp-buffer
    (insert-file-contents (expand-file-name "crates/conversation/src/files/secrets.rs" contexture-test-root))
    (search-forward "fn names_tell_secrets")
    (let ((secret t))
      (while (re-search-forward "^            \\(?:\"\\([^\"]+\\)\",\\|\\(\\] {\\)\\)\\|^    }" nil t)
        (cond ((match-string 2) (unless secret (goto-char (point-max))))
              ((match-string 1)
               (should (eq secret (and (contexture--secret-file-p
                                        (concat "/p/" (match-string 1)))
                                       t))))
              (t (goto-char (point-max))))
        (when (looking-at-p "\n        \\] {") (setq secret nil))))))

(ert-deftest contexture-sources-files-in-other-encodings-are-as-emacs-decodes-them ()
  (contexture-test-with-server
    (let ((text "# \u00fc\u00e4 \u65e5\n"))
      (pcase-dolist (`(,coding . ,text)
                     `((latin-1-unix . "# \u00fc\n") (utf-16-unix . ,text)
                       (gbk-unix . "# \u65e5\u672c\n") (shift_jis-unix . "# \u65e5\u672c\n")))
        (let ((file (concat llm-ert-directory (symbol-name coding) ".txt")))
          (let ((coding-system-for-write coding)) (write-region text nil file nil 'silent))
          (let ((coding-system-for-read coding))
            (contexture-test-message "^Added" (contexture-add-file file)))
          (should (equal text (plist-get (car (last (contexture-test-items))) :content))))))
    (let ((file (concat llm-ert-directory "z.txt.gz"))
          (image (concat llm-ert-directory "p.png")))
      (with-temp-buffer (insert "zipped\n") (write-region nil nil file nil 'silent))
      (contexture-test-message "^Added" (contexture-add-file file))
      (let ((item (car (last (contexture-test-items)))))
        (should (equal "zipped\n" (plist-get item :content)))
        (should (eq :fresh (plist-get item :state))))
      ;; A small file can unpack to a very long text.
      (let ((large (concat llm-ert-directory "large.txt.gz")))
        (with-temp-buffer
          (insert (make-string (* 2 contexture--most-decoded) ?a))
          (write-region nil nil large nil 'silent))
        (contexture-test-message "^Nothing added .*large.txt.gz has more than 4.* too much to decode"
          (contexture-add-file large))
        (delete-file large))
      (let ((coding-system-for-write 'no-conversion))
        (write-region "\x89PNG\0\0" nil image nil 'silent))
      (contexture-test-message "^Nothing added .*p.png is a picture or other binary data"
        (contexture-add-file image))
      ;; Marked together, they are one addition.
      (contexture-test-message "^Undid" (contexture-undo))
      (with-current-buffer (dired-noselect llm-ert-directory)
        (dired-mark-files-regexp "gz\\'\\|png\\'\\|a.txt\\'")
        (contexture-test-message "^Added 1 file .*1 not added: .*p\\.png"
          (contexture-add-dwim))
        (contexture-test-message "^Undid" (contexture-undo))))))

(defconst contexture-sources-tests--encodings
  '((latin-1-unix . "café\n") (latin-1-dos . "naïve\nö\n") (utf-16-unix . "ü 日本\n")
    (utf-16le-with-signature-dos . "é日\nx\n") (utf-8-with-signature-unix . "é\n") (gbk-unix . "日本 中文\n")
    (shift_jis-unix . "日本\n") (euc-jp-unix . "日本\n") (iso-2022-jp-unix . "日本\n") (euc-kr-unix . "한국\n")
    (koi8-r-unix . "привет\n") (windows-1252-mac . "naïve\nœuvre\n") (big5-unix . "中文\n")
    ;; These bytes are UTF-8, too, of another text.
    (iso-8859-15-unix . "Ã©tÃ©\n"))
  "Alist from coding systems to texts.")

(ert-deftest contexture-sources-what-emacs-shows-is-sent-in-every-encoding ()
  "Of files, lines, unsaved and saved edits, and after the buffer is gone."
  (contexture-test-with-server
    (pcase-dolist (`(,coding . ,text) contexture-sources-tests--encodings)
      (let* ((file (expand-file-name (format "%s.txt" coding) llm-ert-directory))
             (coding-system-for-write coding)
             (save-silently t)
             (shown (lambda (way text &optional context)
                      (contexture-test-settle)
                      (let ((items (contexture-test-items context)))
                        (should (equal (list coding way (plist-get (car (last items)) :content))
                                       (list coding way text)))
                        (should (equal (list coding way (plist-get (car (last items)) :state))
                                       (list coding way :fresh))))))
             context)
        (write-region text nil file nil 'silent)
        (with-current-buffer (let ((coding-system-for-read coding)) (find-file-noselect file))
          (should (equal (buffer-string) text))
          (setq context (contexture-adding-context))
          (contexture-test-message "^Added" (contexture-add-file file))
          (funcall shown 'file text)
          (contexture-test-message "^Added"
            (contexture-add-region (point-min) (progn (goto-char (point-min)) (forward-line) (point))))
          (contexture-test-message "^Undid" (contexture-undo))
          (goto-char (point-max))
          (insert "end\n")
          (funcall shown 'edited (concat text "end\n"))
          (let ((coding-system-for-write nil)) (save-buffer))
          (funcall shown 'saved (concat text "end\n"))
          (kill-buffer))
        (funcall shown 'killed (concat text "end\n") context)))))

(ert-deftest contexture-sources-a-saved-and-killed-latin-1-buffer-is-no-doubt ()
  (contexture-test-with-server
    (let ((file (concat llm-ert-directory "l.txt"))
          (coding-system-for-write 'latin-1-unix))
      (write-region "caf\u00e9\n" nil file nil 'silent)
      (with-current-buffer (let ((coding-system-for-read 'latin-1-unix)) (find-file-noselect file))
        (contexture-test-message "^Added" (contexture-add-buffer))
        (insert "new ")
        (save-buffer)
        (kill-buffer))
      (let ((item (contexture-test-only-item "l.txt")))
        (should (equal "new caf\u00e9\n" (plist-get item :content)))
        (should (eq :fresh (plist-get item :state))))
      (sleep-for 0.01)
      (write-region "other\u00e9\n" nil file nil 'silent)
      (let ((item (contexture-test-only-item "l.txt")))
        (should (eq :stale (plist-get item :state)))
        (should (string-match-p "has changed, and is not UTF-8"
                                (car (contexture-test-metadata item :stale))))))))

(ert-deftest contexture-sources-limits-are-told-in-words-of-emacs ()
  (contexture-test-with-server
    (let ((file (concat llm-ert-directory "big.txt")))
      (write-region (make-string 1200000 ?x) nil file nil 'silent)
      (contexture-test-message
          "^Nothing added .* has 1.1 MiB, and files of at most 1 MiB are added whole; visit it"
        (contexture-add-file file)))))

(ert-deftest contexture-sources-refusals-advise-no-calls-of-programs ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "nul.txt" "a\0b")))
      (pcase-let ((`(,_ ,message ,_ ,data)
                   (should-error (contexture-request
                                  'add-file
                                  (list :manager (contexture-adding-context) :path file))
                                 :type 'contexture-error)))
        (should (string-search "add-item" message))
        (should (string-match-p "is binary: .* at offset 1\\'"
                                (contexture--error-text
                                 (list :message message :data data))))))))

(ert-deftest contexture-tree-shows-a-refusal-whole ()
  (contexture-test-with-server
    (contexture-request 'configure-manager
                        (list :manager (contexture-adding-context) :max-items 1))
    (let ((message (contexture-test-message "^Nothing added to"
                     (contexture-add-directory (contexture-test-tree)))))
      (should (string-match-p "2 files (4 tokens) do not fit.*contexture-set-limit, or add a listing"
                              message)))
    (should-not (contexture-test-items))))

(ert-deftest contexture-tree-refuses-what-is-no-directory ()
  (contexture-test-with-server
    (contexture-test-user-error "is not a directory"
      (contexture-add-directory "/nowhere-at-all"))
    (contexture-test-user-error "no connection to /ssh:host:"
      (contexture-add-directory "/ssh:host:/tmp"))
    (contexture-test-user-error "no project" (contexture-add-project))
    (contexture-test-user-error "No directory" (contexture-cancel))
    (should-not contexture-notification-functions)))

(ert-deftest contexture-tree-shows-progress ()
  (contexture-test-with-server
    (let ((root (contexture-test-tree)) shown)
      (cl-letf (((symbol-function 'contexture-tree--show)
                 (lambda (text) (push text shown))))
        (contexture-test-message "^Added" (contexture-add-directory root)))
      (should (string-match-p "\\`Adding .*/p/ to .*\\.\\.\\. (C-g cancels)"
                              (car (last shown))))
      (should (cl-some (lambda (text) (string-match-p ": 2 files read, 11 B" text))
                       shown))
      (should-not contexture-tree--walks)
      (should-not contexture-notification-functions))))

(ert-deftest contexture-tree-quitting-cancels ()
  (contexture-test-with-server
    (dotimes (number 300)
      (contexture-test-file (format "many/%d/f.txt" number) "text"))
    (contexture-request 'configure-manager
                        (list :manager (contexture-adding-context) :max-items 1000))
    (contexture-test-message "^Cancelled: nothing of .*many/ was added"
      (contexture-add-directory "many")
      (should (eq (key-binding (kbd "C-g")) #'contexture-cancel))
      (contexture-cancel))
    (should (eq (key-binding (kbd "C-g")) #'keyboard-quit))
    (should-not (contexture-test-items))))

(ert-deftest contexture-tree-forgets-a-server-that-is-stopped ()
  (contexture-test-with-server
    (let ((root (contexture-test-tree)))
      (contexture-request 'ping)
      (contexture-ert-stop-server)
      (unwind-protect
          (progn
            (contexture-test-message "^Gave up on .*/p/; the server may still"
              (contexture-add-directory root)
              (contexture-cancel)
              (contexture-cancel))
            (should-not contexture-tree--walks))
        (contexture-ert-continue-server)))))

(ert-deftest contexture-tree-stays-cancelled-when-the-server-dies ()
  (contexture-test-with-server
    (dotimes (number 300)
      (contexture-test-file (format "many/%d/f.txt" number) "text"))
    (contexture-request 'ping)
    (contexture-test-message "^Cancelled: nothing of .*many/ was added"
      (contexture-ert-stop-server)
      (contexture-add-directory "many" 'listing)
      (contexture-cancel)
      (contexture-ert-kill-server t))
    (should-not (contexture-test-items))
    (should-not contexture-connected-hook)))

;;;; Kills

(ert-deftest contexture-sources-adds-the-latest-kill ()
  (contexture-test-with-server
    (contexture-test-user-error "Kill ring is empty" (call-interactively
                                                      #'contexture-add-kill))
    (kill-new "old")
    (kill-new (propertize "new" 'face 'bold))
    (contexture-test-message "^Added killed text to"
      (call-interactively #'contexture-add-kill))
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) "new"))
      (should (eq (plist-get item :type) :text))
      (should (equal (contexture-test-metadata item :origin) '(:kill))))))

(ert-deftest contexture-sources-adds-a-chosen-kill ()
  (contexture-test-with-server
    (kill-new "old")
    (kill-new "new")
    (contexture-test-choosing (lambda (names _) (car (last names)))
      (let ((current-prefix-arg '(4)))
        (contexture-test-message "^Added" (call-interactively #'contexture-add-kill))))
    (should (equal (contexture-test-contents) '("old")))))

;;;; Diagnostics

(defun contexture-test-flymake (&rest diagnostics)
  "Have Flymake report DIAGNOSTICS, lists of LINE TYPE TEXT."
  (let ((buffer (current-buffer)) reported)
    (setq-local flymake-diagnostic-functions
                (list (lambda (report &rest _)
                        (setq reported t)
                        (funcall report
                                 (cl-loop for (line type text) in diagnostics
                                          for region = (flymake-diag-region buffer line)
                                          collect (flymake-make-diagnostic
                                                   buffer (car region) (cdr region)
                                                   type text))))))
    (flymake-mode 1)
    (flymake-start)
    (llm-ert-wait-for reported)))

(ert-deftest contexture-sources-adds-the-diagnostic-at-point ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(one)" "  (two)" "(three)")
      (contexture-test-flymake '(2 :error "two is wrong") '(3 :warning "three is odd"))
      (goto-char (point-min))
      (contexture-test-user-error "no diagnostics on this line" (contexture-add-diagnostics))
      (forward-line)
      (contexture-test-message "^Added the diagnostics of .*a.el:2 to" (contexture-add-diagnostics))
      (let ((item (contexture-test-only-item)))
        (should (equal (plist-get item :content)
                       "line 2: error: two is wrong\n    (two)\n"))
        (should (eq (plist-get item :type) :error))
        (should (equal (contexture-test-metadata item :origin :start-line :filename)
                       (list :diagnostic 2 (buffer-file-name))))))))

(ert-deftest contexture-sources-adds-all-diagnostics-in-order ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.el" "(one)" "(two)" "(three)")
      (contexture-test-flymake '(3 :note "c") '(1 eglot-warning "a") '(2 :error "b"))
      (contexture-test-message "^Added" (contexture-add-diagnostics t))
      (should (equal (contexture-test-contents)
                     '("line 1: warning: a\n    (one)\nline 2: error: b\n    (two)\n\
line 3: note: c\n    (three)\n"))))))

(ert-deftest contexture-sources-diagnostics-need-flymake ()
  (contexture-test-with-server
    (with-temp-buffer
      (contexture-test-user-error "not on" (contexture-add-diagnostics)))))

;;;; Differences

(defun contexture-test-repository ()
  "Make a repository with two changed files and return the first."
  (contexture-test-git "init" "-q")
  (let ((file (contexture-test-file "a.txt" "one" "two")))
    (contexture-test-file "b.txt" "b")
    (contexture-test-file "same.txt" "same")
    (contexture-test-git "add" ".")
    (contexture-test-git "commit" "-q" "-m" "first")
    (contexture-test-file "a.txt" "one" "changed")
    (contexture-test-file "b.txt" "b" "more")
    file))

(ert-deftest contexture-sources-adds-the-diff-of-a-file ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-repository)
      (contexture-test-message "^Added the diff of a.txt to buffer a.txt" (contexture-add-diff))
      (let ((item (contexture-test-only-item)))
        (should (string-match-p "^-two\n\\+changed$" (plist-get item :content)))
        (should-not (string-match-p "b.txt" (plist-get item :content)))
        (should (equal (contexture-test-metadata item :origin :language)
                       '(:diff "diff")))))))

(ert-deftest contexture-sources-adds-the-diff-of-the-project ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-repository)
      (contexture-test-message "^Added" (contexture-add-diff t))
      (let ((text (plist-get (contexture-test-only-item) :content)))
        (should (string-match-p "^\\+changed$" text))
        (should (string-match-p "^\\+more$" text)))
      (should-not (get-buffer " *contexture diff*")))))

(defun contexture-sources-tests--submodules (folders)
  "Make a repository in each of FOLDERS, with a changed file that names it.
Each names all as its submodules, and some that are none.  The one in bare/
has no commit, and the one in clean/ no change."
  (let ((names (append folders '("../out/" "./" "none/" "loop/" "/tmp/" "~/"))))
    (dolist (folder folders)
      (let* ((default-directory (expand-file-name folder))
             (llm-ert-directory default-directory))
        (make-directory default-directory t)
        (contexture-test-file "a.txt" "one")
        (with-temp-file ".gitmodules"
          (dolist (name names)
            (insert (format "[submodule %S]\n\tpath = %S\n\turl = x\n" name
                            (directory-file-name name)))))
        (contexture-test-git "init" "-q")
        (unless (equal folder "bare/")
          (contexture-test-git "add" "--" "a.txt" ".gitmodules")
          (contexture-test-git "commit" "-q" "-m" "x"))
        (unless (equal folder "clean/")
          (contexture-test-file "a.txt" (concat "in " folder)))))
    (make-directory "none")
    (make-symbolic-link "." "loop")))

(defconst contexture-sources-tests--submodules
  '("lib/a b/" "lib/" "deep/er/" "clean/" "bare/" "x$(y)'z/")
  "Folders of submodules.")

(defun contexture-sources-tests--check-submodules (text)
  "Check TEXT, of the differences of a project and of its submodules."
  (dolist (folder (cons "" (cl-set-difference contexture-sources-tests--submodules
                                            '("clean/" "bare/") :test #'equal)))
    (dolist (line (list (format "+++ b/%sa.txt" folder)
                        (format "+in %s" (if (equal folder "") "./" folder))))
      (should (equal (list line (cl-count line (split-string text "[\n\t]") :test #'equal))
                     (list line 1)))))
  (should (string-match-p "^bare/: .*HEAD" text))
  (should-not (string-match-p "^[^ ]*.*b/\\(?:clean\\|out\\|loop\\)" text)))

(ert-deftest contexture-sources-the-diff-of-a-project-has-those-of-its-submodules ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (make-directory "top")
    (let* ((default-directory (expand-file-name "top/")))
      (contexture-sources-tests--submodules
       (append contexture-sources-tests--submodules '("./")))
      (contexture-test-visiting (expand-file-name "a.txt")
        (contexture-test-message "^Added" (contexture-add-diff t))
        (contexture-sources-tests--check-submodules
         (plist-get (contexture-test-only-item) :content))))))

(ert-deftest contexture-sources-diff-offers-to-save-first ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-repository)
      (insert "zero\n")
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (contexture-test-message "^Added" (contexture-add-diff)))
      (should (string-match-p "^\\+zero$" (car (contexture-test-contents)))))))

(ert-deftest contexture-sources-tells-that-nothing-differs ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (contexture-test-repository)
    (contexture-test-visiting (expand-file-name "same.txt")
      (contexture-test-message "same.txt has not changed" (contexture-add-diff)))
    (contexture-test-visiting (contexture-test-file "new.txt" "new")
      (contexture-test-message "new.txt is not under version control" (contexture-add-diff))
      (should-not (contexture-test-items)))))

(ert-deftest contexture-sources-diff-explains-what-it-cannot-take ()
  (skip-unless (executable-find "git"))
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "a")
      (contexture-test-user-error "not under version control" (contexture-add-diff))
      (contexture-test-user-error "not under version control" (contexture-add-diff t)))
    (contexture-test-git "init" "-q")
    (contexture-test-visiting (contexture-test-file "b.txt" "b")
      (contexture-test-message "version control says: .*HEAD"
        (contexture-add-diff t)))
    (with-temp-buffer
      (contexture-test-user-error "visits no file" (contexture-add-diff)))))

;;;; Compilations

(defun contexture-test-compilation (mode &rest lines)
  "Show LINES in a new buffer of MODE, and return it."
  (with-current-buffer (generate-new-buffer "*compilation*")
    (insert (mapconcat #'identity lines "\n") "\n")
    (setq default-directory llm-ert-directory)
    (funcall mode)
    (goto-char (point-min))
    (current-buffer)))

(ert-deftest contexture-sources-adds-the-error-at-point ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.c" "x")))
      (with-current-buffer
          (contexture-test-compilation
           #'compilation-mode "make" "" "In function 'f':"
           "a.c:3:5: error: 'x' undeclared" "    3 | x" "      | ^"
           "a.c:9:1: warning: unused" "" "Compilation exited")
        (search-forward "| ^")
        (contexture-test-message "^Added the error at .*a.c:3 to" (contexture-add-compilation))
        (let ((item (contexture-test-only-item)))
          (should (equal (plist-get item :content)
                         "In function 'f':\na.c:3:5: error: 'x' undeclared\n    3 | x\n      | ^\n"))
          (should (eq (plist-get item :type) :error))
          (should (equal (contexture-test-metadata item :origin :filename :start-line)
                         (list :compilation file 3))))))))

(ert-deftest contexture-sources-knows-the-file-of-a-coloured-error ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "a.c" "x")))
      (with-current-buffer
          (contexture-test-compilation
           #'compilation-mode "make" ""
           "\e[01m\e[Ka.c:3:5:\e[m\e[K \e[01;31m\e[Kerror: \e[m\e[Kwrong"
           "\e[01m\e[Kb.c:4:5:\e[m\e[K \e[01;31m\e[Kerror: \e[m\e[Kwrong")
        (search-forward "a.c")
        (contexture-test-message "^Added the error at .*a.c:3 to" (contexture-add-compilation))
        (should (equal (contexture-test-metadata (contexture-test-only-item)
                                                 :filename :start-line)
                       (list file 3)))
        ;; The line of a file that is not there is none of this buffer.
        (search-forward "b.c")
        (contexture-test-message "^Added the errors of [^:]* to" (contexture-add-compilation))
        (should (equal (contexture-test-metadata (cadr (contexture-test-items))
                                                 :filename :start-line :buffer)
                       '(nil nil "*compilation*")))))))

(ert-deftest contexture-sources-adds-all-errors ()
  (contexture-test-with-server
    (with-current-buffer
        (contexture-test-compilation
         #'compilation-mode "make" "" "a.c:3:5: error: wrong" "    3 | x"
         "a.c:4:5: note: here" "a.c:9:1: warning: unused" "" "exited")
      (contexture-test-user-error "no error at point" (contexture-add-compilation))
      (contexture-test-message "^Added" (contexture-add-compilation t))
      (should (equal (contexture-test-contents)
                     '("a.c:3:5: error: wrong\n    3 | x\na.c:4:5: note: here\n\
a.c:9:1: warning: unused\n"))))))

(ert-deftest contexture-sources-adds-a-match-of-grep ()
  (contexture-test-with-server
    (contexture-test-file "a.el" "(a)")
    (with-current-buffer
        (contexture-test-compilation #'grep-mode "grep -nH a *.el"
                                     "a.el:1:(a)" "b.el:7:(b)" "" "Grep finished")
      (forward-line 1)
      (contexture-test-message "^Added .*a.el:1 to" (contexture-add-compilation))
      (contexture-test-message "^Added" (contexture-add-compilation t))
      (should (equal (contexture-test-contents)
                     '("a.el:1:(a)\n" "a.el:1:(a)\nb.el:7:(b)\n"))))))

(ert-deftest contexture-sources-calls-a-match-of-grep-no-error ()
  (contexture-test-with-server
    (contexture-test-file "a.el" "(a)")
    (with-current-buffer
        (contexture-test-compilation #'grep-mode "grep -nH a *.el"
                                     "a.el:1:(a)" "" "Grep finished")
      (forward-line 1)
      (contexture-test-message "^Added the match at .*a.el:1 to" (contexture-add-compilation))
      (contexture-test-message "^Added the matches of " (contexture-add-compilation t)))))

(ert-deftest contexture-sources-compilation-needs-one ()
  (contexture-test-with-server
    (with-temp-buffer
      (setq next-error-last-buffer nil)
      (contexture-test-user-error "not a compilation buffer; first go to the error in that of M-x compile"
        (contexture-add-compilation))
      (setq next-error-last-buffer (contexture-test-compilation #'compilation-mode "fine"))
      (contexture-test-user-error
          (concat "first go to the error in "
                  (regexp-quote (buffer-name next-error-last-buffer)) "\\'")
        (contexture-add-compilation)))
    (with-current-buffer (contexture-test-compilation #'compilation-mode "fine")
      (contexture-test-user-error "has no errors" (contexture-add-compilation t)))))

;;;; Removing

(defun contexture-test-two-items ()
  "Add two items to this buffer: all of it, and its second line."
  (contexture-add-buffer)
  (contexture--add (contexture--capture (line-beginning-position 2)
                                        (line-end-position 2) :region))
  (contexture-test-settle))

(ert-deftest contexture-sets-removes-the-item-at-point ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "one" "two" "three")
      (goto-char (point-min))
      (contexture-test-two-items)
      (contexture-test-message "^Removed .*a.txt from buffer a.txt; .*undo"
        (call-interactively #'contexture-remove))
      (should (equal (contexture-test-contents) '("two")))
      (contexture-undo)
      (contexture-test-settle)
      (forward-line)                    ; where an item of that line goes first
      (contexture-test-message "^Removed .*a.txt:2 from buffer a.txt"
        (call-interactively #'contexture-remove))
      (should (equal (contexture-test-contents) '("one\ntwo\nthree\n"))))))

(defvar embark-keymap-alist)

(defun contexture-sources-tests--act (key table name)
  "Call what Embark has on KEY for NAME, a candidate of TABLE."
  (let* ((category (completion-metadata-get (completion-metadata "" table nil) 'category))
         (map (symbol-value (alist-get category embark-keymap-alist))))
    (funcall (lookup-key map key) name)))

(ert-deftest contexture-embark-acts-on-a-chosen-item ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "one" "two" "three")
      (goto-char (point-min))
      (contexture-test-two-items)
      (let (embark-keymap-alist names)
        (contexture-test-choosing
            (lambda (candidates table)
              (setq names candidates)
              (goto-char (point-min))
              (save-window-excursion
                (contexture-sources-tests--act "o" table (car candidates))
                (should (equal (line-number-at-pos) 2)))
              (contexture-sources-tests--act "Z" table (cadr candidates))
              (contexture-sources-tests--act "x" table (car candidates))
              (contexture-test-settle)
              "none")
          (let ((current-prefix-arg '(4)))
            (contexture-test-user-error "No item was chosen"
              (call-interactively #'contexture-remove))))
        (should (string-match-p "a.txt:2" (car names)))
        (should (equal (contexture-test-contents) '("one\ntwo\nthree\n")))
        (should-error (contexture-embark-visit (car names)) :type 'user-error)))))

(ert-deftest contexture-embark-acts-on-a-chosen-session ()
  (contexture-test-with-server
    (contexture-conversation-new "first")
    (contexture-test-settle)
    (let (embark-keymap-alist)
      (contexture-test-choosing
          (lambda (candidates table)
            (save-window-excursion
              (contexture-sources-tests--act "v" table (car candidates)))
            (contexture-sources-tests--act "d" table (car candidates))
            (contexture-test-settle)
            "none")
        (contexture-test-user-error "No conversation was chosen"
          (call-interactively #'contexture-conversation-make-current))))
    (should-not (contexture-request 'list-sessions))))

(ert-deftest contexture-sets-removes-a-chosen-item ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "one" "two" "three")
      (goto-char (point-min))
      (contexture-test-user-error "has no items" (call-interactively #'contexture-remove))
      (contexture-test-two-items)
      (forward-line)
      (let (candidates annotation)
        (contexture-test-choosing
            (lambda (names table)
              (setq candidates names
                    annotation (contexture-test-annotation (car names) table))
              (car names))
          (contexture-test-message "^Removed .*a.txt:2"
            (let ((current-prefix-arg '(4)))
              (call-interactively #'contexture-remove))))
        (should (= 2 (length candidates)))
        (should (equal annotation '("text region, 1 token, just now" contexture-item))))
      (should (equal (contexture-test-contents) '("one\ntwo\nthree\n"))))))

;;;; Sets

(ert-deftest contexture-sets-saves-loads-and-drops ()
  (contexture-test-with-server
    (with-current-buffer (get-buffer-create "here")
      (contexture-test-user-error "no items to save"
        (call-interactively #'contexture-save-set))
      (contexture-test-user-error "no sets yet"
        (call-interactively #'contexture-load-set))
      (insert "one")
      (contexture-add-buffer)
      (contexture-test-choosing "bug 12"
        (contexture-test-message "^Saved 1 item of buffer here as the set bug 12$"
          (call-interactively #'contexture-save-set))
        (contexture-test-message "in place of the earlier one; .*undoes it"
          (call-interactively #'contexture-save-set))
        (contexture-clear)
        (contexture-test-message "^Loaded 1 item of the set bug 12 into buffer here;"
          (call-interactively #'contexture-load-set))
        (contexture-test-message "^Loaded .*, which lost 1 item;"
          (call-interactively #'contexture-load-set))
        (let ((current-prefix-arg '(4)))
          (contexture-test-message "^Loaded 1 item of the set bug 12 into buffer here;"
            (call-interactively #'contexture-load-set)))
        (should (equal (contexture-test-contents) '("one" "one")))
        (contexture-test-message "^Dropped the set bug 12;"
          (call-interactively #'contexture-drop-set)))
      (should-not (contexture-request 'list-sets))
      (contexture-test-message "^Undid the dropping of a set (bug 12) in buffer here"
        (contexture-undo))
      (should (contexture-request 'list-sets)))))

(ert-deftest contexture-sets-are-annotated ()
  (contexture-test-with-server
    (with-current-buffer (get-buffer-create "here")
      (insert "one")
      (contexture-add-buffer)
      (contexture-save-set "bug 12")
      (contexture-test-settle)
      (let (annotation)
        (contexture-test-choosing
            (lambda (names table)
              (setq annotation (contexture-test-annotation (car names) table))
              (car names))
          (should (equal (contexture-sets--read-set "Load" t) "bug 12")))
        (should (equal annotation '("1 item, 1 token, just now" contexture-set)))))))

;;;; Which context

(ert-deftest contexture-switch-chooses-the-context ()
  (contexture-test-with-server
    (with-current-buffer (get-buffer-create "here")
      (insert "one")
      (contexture-test-choosing "new one"
        (cl-letf (((symbol-function 'y-or-n-p) #'always))
          (contexture-test-message "now work on new one"
            (call-interactively #'contexture-switch))))
      (contexture-test-message "^Added here to new one" (contexture-add-buffer))
      (let (candidates annotation)
        (contexture-test-choosing
            (lambda (names table)
              (setq candidates names
                    annotation (contexture-test-annotation (car names) table))
              "")
          (contexture-test-message "now work on buffer here"
            (call-interactively #'contexture-switch)))
        (should (equal candidates '("new one")))
        (should (equal annotation '("1 item, 1 token, just now" contexture-context))))
      (should-not contexture-context)
      (with-temp-buffer (should-not contexture-context)))))

(ert-deftest contexture-switch-offers-the-contexts-of-sessions ()
  (contexture-test-with-server
    (contexture-test-visiting (contexture-test-file "a.txt" "one")
      (let ((empty (plist-get (contexture-request 'open-session '(:name "empty")) :manager))
            (full (plist-get (contexture-request 'open-session '(:name "full")) :manager)))
        (contexture-request 'add-context (list :manager full :content "text"))
        (contexture-test-choosing
            (lambda (names table)
              (should (equal (sort names #'string<) (sort (list empty full) #'string<)))
              (should (string-prefix-p "conversation full, 1 item"
                                       (car (contexture-test-annotation full table))))
              (should (string-prefix-p "conversation empty, 0 items"
                                       (car (contexture-test-annotation empty table))))
              empty)
          (call-interactively #'contexture-switch))
        (should (equal (contexture-adding-context) empty))))))

(ert-deftest contexture-switch-marks-what-is-in-the-other-context ()
  (contexture-test-with-server
    (with-current-buffer (get-buffer-create "here")
      (insert "one\n")
      (contexture-mode)
      (contexture-add-buffer)
      (llm-ert-wait-for (contexture-marks--overlays))
      (contexture-switch "elsewhere")
      (should contexture-mode)
      (llm-ert-wait-for (not (contexture-marks--overlays))))))

(ert-deftest contexture-switch-is-not-for-the-list ()
  (contexture-test-with-server
    (save-window-excursion
      (contexture-list "m")
      (with-current-buffer contexture-list-buffer
        (contexture-test-user-error "switch in the buffer that you work on"
          (contexture-switch "other"))
        (should (equal contexture-context "m"))))))

(ert-deftest contexture-command-map-has-the-new-commands ()
  (dolist (command '(contexture-add-dwim contexture-add-directory
                     contexture-add-project contexture-add-kill
                     contexture-add-diagnostics contexture-add-diff
                     contexture-add-compilation contexture-remove
                     contexture-save-set contexture-load-set contexture-drop-set
                     contexture-switch contexture-cancel))
    (should (where-is-internal command contexture-command-map))
    (should (commandp command))))

(provide 'contexture-sources-tests)
;;; contexture-sources-tests.el ends here
